from .animals import animals_classes as animals_classes
from .animals import load_animals as load_animals
from .cifar import (
    cifar10_classes as cifar10_classes,
)
from .cifar import (
    cifar100_classes as cifar100_classes,
)
from .cifar import (
    load_cifar as load_cifar,
)
from .embedded import (
    load_class_vectors as load_class_vectors,
)
from .embedded import (
    load_held_out_panel as load_held_out_panel,
)
from .embedded import (
    load_panel as load_panel,
)
from .embedded import (
    load_similarities as load_similarities,
)
from .features import ImageData as ImageData
