# Scheduler and workers of a Dask cluster. Build it in the folder above, with the packages for your
# storage: docker build -f deploy/workers.Dockerfile --build-arg STORAGE="s3fs" -t rankshot-workers .
FROM python:3.11-slim-bookworm AS build
ARG STORAGE=""
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN python -m venv /opt/rankshot \
 && /opt/rankshot/bin/pip install --no-cache-dir --constraint constraints.txt '.[cli,cluster]' $STORAGE

FROM python:3.11-slim-bookworm
RUN useradd --system --uid 10001 --create-home worker
COPY --from=build /opt/rankshot /opt/rankshot
# One thread per worker: more would wait for one another.
ENV PATH=/opt/rankshot/bin:$PATH PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
USER 10001
WORKDIR /home/worker
CMD ["dask", "worker", "--nthreads", "1"]
