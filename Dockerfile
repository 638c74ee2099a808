# Anaphora in a container, on the processor:
#   docker build -t anaphora .
#   docker run --rm -v "$PWD/outputs:/home/user/outputs" anaphora demo
# pip's own torch brings CUDA on Linux. A smaller one, for the processor alone, comes from the index that the installation
# page of pytorch.org names:
#   docker build -t anaphora --build-arg TORCH_INDEX=... .
# On an NVIDIA GPU the container must see it:
#   docker run --rm --gpus all -v "$PWD/outputs:/home/user/outputs" anaphora train experiment=token_values trainer=gpu
FROM python:3.11-slim
ARG TORCH_INDEX=
WORKDIR /anaphora

# The lock file first: its layer stays while the code changes. It takes the torch that is there.
COPY requirements.lock ./
RUN pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$(grep '^torch==' requirements.lock)" \
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
