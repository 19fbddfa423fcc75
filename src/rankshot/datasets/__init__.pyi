from .animals import animals_classes as animals_classes, load_animals as load_animals
from .cifar import (
    cifar100_classes as cifar100_classes,
    cifar10_classes as cifar10_classes,
    load_cifar as load_cifar,
)
from .embedded import (
    load_class_vectors as load_class_vectors,
    load_held_out_panel as load_held_out_panel,
    load_panel as load_panel,
    load_similarities as load_similarities,
)
from .features import ImageData as ImageData
