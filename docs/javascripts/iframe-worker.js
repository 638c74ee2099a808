/* A browser runs no worker from a page that was opened from a folder, and the search box needs one: there, the worker's
   script runs in a hidden frame. The theme would otherwise load such a shim from another host. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open(); // ends the loading of the empty page, which would replace what is written now
      inside.document.write("<!DOCTYPE html><title></title>");
      inside.document.close();
      const load = (address) => new Promise((done, fail) => {
        const script = inside.document.createElement("script");
        script.src = address;
        script.onload = done;
        script.onerror = fail;
        inside.document.head.append(script);
      });
      inside.importScripts = (...addresses) => addresses.reduce((before, address) => before.then(() => load(address)), Promise.resolve());
      inside.postMessage = (data) => this.answer(new MessageEvent("message", { data }));
      this.ready = load(url);
      this.ready.catch(() => this.dispatchEvent(new Event("error")));
    }
    answer(event) {
      this.dispatchEvent(event);
      this.onmessage?.(event);
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
