# Anaphora in a container, on the processor:
#   docker build -t anaphora .
#   mkdir -p outputs
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD/outputs:/home/user/outputs" anaphora demo
# Without the second line Docker makes outputs for root, and nobody else can write there.
# pip's own torch brings CUDA on Linux. A smaller one, for the processor alone, comes from the index that the installation
# page of pytorch.org names:
#   docker build -t anaphora --build-arg TORCH_INDEX=... .
# On an NVIDIA GPU the container must see it:
#   docker run --rm --gpus all --user "$(id -u):$(id -g)" -v "$PWD/outputs:/home/user/outputs" anaphora train \
#     experiment=token_values trainer=gpu
FROM python:3.11-slim
ARG TORCH_INDEX=
WORKDIR /anaphora

# The lock files first: their layer stays while the code changes. torch has no hash, since its builds differ.
COPY requirements.lock requirements-torch.lock ./
RUN pip install --no-cache-dir --no-deps --require-hashes --requirement requirements.lock \
    && pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} --requirement requirements-torch.lock

COPY pyproject.toml README.md LICENSE ./
COPY configs configs
COPY src src
RUN pip install --no-cache-dir --no-deps .

# What runs write belongs to the user whom --user names, else to this one. Corpora are cached in the home, which Docker
# would set to / for a user whom the image does not know.
RUN useradd --create-home --uid 1000 user && chmod 1777 /home/user
ENV HOME=/home/user
USER user
WORKDIR /home/user
ENTRYPOINT ["anaphora"]
CMD ["--help"]
