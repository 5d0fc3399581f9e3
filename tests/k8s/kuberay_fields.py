"""KubeRay 1.7's objects as models: the fields of its CRD API reference of v1.7.0.

Pod templates within are checked as Kubernetes' own (test_schemas.py).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Strings = dict[str, str]
AtLeast0 = Annotated[int, Field(ge=0)]
AtLeast1 = Annotated[int, Field(ge=1)]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class AuthOptions(Model):
    mode: Literal["disabled", "token"] = "token"
    secretName: str = ""
    enableK8sTokenAuth: bool = False


class AutoscalerOptions(Model):
    resources: dict[str, Any] | None = None
    image: str | None = None
    imagePullPolicy: Literal["Always", "IfNotPresent", "Never"] | None = None
    securityContext: dict[str, Any] | None = None
    idleTimeoutSeconds: AtLeast0 | None = None
    upscalingMode: Literal["Default", "Aggressive", "Conservative"] | None = None
    version: Literal["v1", "v2"] | None = None
    env: list[dict[str, Any]] = []
    envFrom: list[dict[str, Any]] = []
    volumeMounts: list[dict[str, Any]] = []
    command: list[str] = []
    args: list[str] = []


class RedisCredential(Model):
    value: str | None = None
    valueFrom: dict[str, Any] | None = None


class GcsEmbeddedStorage(Model):
    claimName: str = ""
    size: str = "1Gi"
    storageClassName: str | None = None
    accessModes: list[str] = []
    subPath: str = ""
    deletionPolicy: Literal["DeleteWithCluster", "Retain"] = "DeleteWithCluster"


class GcsFaultToleranceOptions(Model):
    backend: Literal["redis", "rocksdb"] = "redis"
    redisUsername: RedisCredential | None = None
    redisPassword: RedisCredential | None = None
    externalStorageNamespace: str = ""
    redisAddress: str = ""
    storage: GcsEmbeddedStorage | None = None


class Group(Model):
    template: dict[str, Any]
    rayStartParams: Strings = {}
    resources: Strings = {}
    labels: Strings = {}


class HeadGroupSpec(Group):
    headService: dict[str, Any] | None = None
    enableIngress: bool = False
    ingressOptions: dict[str, Any] | None = None
    serviceType: Literal["ClusterIP", "NodePort", "LoadBalancer"] | None = None


class WorkerGroupSpec(Group):
    groupName: str
    replicas: AtLeast0 = 0
    # Their defaults are 0 and 2,147,483,647, which nobody means.
    minReplicas: AtLeast0
    maxReplicas: AtLeast0
    suspend: bool | None = None
    idleTimeoutSeconds: AtLeast0 | None = None
    priority: int = 0
    numOfHosts: AtLeast1 = 1
    scaleStrategy: dict[str, Any] | None = None


class RayClusterSpec(Model):
    upgradeStrategy: dict[str, Any] | None = None
    authOptions: AuthOptions | None = None
    suspend: bool | None = None
    managedBy: Literal["ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"] | None = None
    autoscalerOptions: AutoscalerOptions | None = None
    headServiceAnnotations: Strings = {}
    enableInTreeAutoscaling: bool = False
    gcsFaultToleranceOptions: GcsFaultToleranceOptions | None = None
    historyServerOptions: dict[str, Any] | None = None
    networkPolicy: dict[str, Any] | None = None
    tlsOptions: dict[str, Any] | None = None
    headGroupSpec: HeadGroupSpec
    rayVersion: str = ""
    workerGroupSpecs: list[WorkerGroupSpec] = []


class SubmitterConfig(Model):
    backoffLimit: AtLeast0 | None = None


class RayJobSpec(Model):
    activeDeadlineSeconds: int | None = None
    backoffLimit: int = 0
    rayClusterSpec: RayClusterSpec | None = None
    submitterPodTemplate: dict[str, Any] | None = None
    metadata: Strings = {}
    clusterSelector: Strings = {}
    submitterConfig: SubmitterConfig | None = None
    managedBy: Literal["ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"] | None = None
    deletionStrategy: dict[str, Any] | None = None
    entrypoint: str = ""
    runtimeEnvYAML: str = ""
    jobId: str = ""
    submissionMode: Literal["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"] = (
        "K8sJobMode"
    )
    entrypointResources: str = ""
    entrypointNumCpus: float = 0
    entrypointNumGpus: float = 0
    ttlSecondsAfterFinished: int = 0
    preRunningDeadlineSeconds: AtLeast1 | None = None
    shutdownAfterJobFinishes: bool = False
    suspend: bool = False


class UpgradeStrategy(Model):
    type: str | None = None
    clusterUpgradeOptions: dict[str, Any] | None = None


class RayServiceSpec(Model):
    rayClusterDeletionDelaySeconds: int | None = None
    serviceUnhealthySecondThreshold: int | None = None
    deploymentUnhealthySecondThreshold: int | None = None
    serveService: dict[str, Any] | None = None
    upgradeStrategy: UpgradeStrategy | None = None
    managedBy: Literal["ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"] | None = None
    serveConfigV2: str = ""
    rayClusterConfig: RayClusterSpec
    excludeHeadPodFromServeSvc: bool = False
    suspend: bool = False


SPECS: dict[str, type[RayJobSpec | RayServiceSpec]] = {
    "RayJob": RayJobSpec,
    "RayService": RayServiceSpec,
}
