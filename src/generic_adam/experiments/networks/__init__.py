"""The two networks of the paper."""

from generic_adam.extras import from_extra

with from_extra("experiments"):
    from generic_adam.experiments.networks.build import NETWORKS, build
    from generic_adam.experiments.networks.lenet import LeNet
    from generic_adam.experiments.networks.resnet import ResNet18

__all__ = ["NETWORKS", "LeNet", "ResNet18", "build"]
