# Anaphora in a container, on the processor:
#   docker build -t anaphora .
#   docker run --rm -v "$PWD/outputs:/home/user/outputs" anaphora demo
# On an NVIDIA GPU: the name of a CUDA build of torch (see pytorch.org), and the container sees the GPU:
#   docker build -t anaphora-gpu --build-arg TORCH=cu130 .
#   docker run --rm --gpus all -v "$PWD/outputs:/home/user/outputs" anaphora-gpu train experiment=demo trainer=gpu
FROM python:3.11-slim
ARG TORCH=cpu
WORKDIR /anaphora

# The lock file first: its layer stays while the code changes. It takes the torch that is there.
COPY requirements.lock ./
RUN pip install --no-cache-dir --index-url "https://download.pytorch.org/whl/${TORCH}" "$(grep '^torch==' requirements.lock)" \
    && pip install --no-cache-dir --requirement requirements.lock

COPY pyproject.toml README.md LICENSE ./
COPY configs configs
COPY src src
RUN pip install --no-cache-dir --no-deps .

# What runs write belongs to the user who starts the container with --user, else to this one.
RUN useradd --create-home --uid 1000 user
USER user
WORKDIR /home/user
ENTRYPOINT ["anaphora"]
CMD ["--help"]
