from .animals import build_animals_features as build_animals_features, load_animals as load_animals
from .cifar import (
    Thumbnails as Thumbnails,
    build_cifar_features as build_cifar_features,
    load_cifar as load_cifar,
    load_thumbnails as load_thumbnails,
)
from .embedded import (
    ANIMAL_SENSES as ANIMAL_SENSES,
    CIFAR_SENSES as CIFAR_SENSES,
    ClassNames as ClassNames,
    class_names as class_names,
    load_class_vectors as load_class_vectors,
    load_election as load_election,
    load_held_out_panel as load_held_out_panel,
    load_panel as load_panel,
    load_similarities as load_similarities,
)
from .features import ImageData as ImageData
from .imagenet import (
    ImageNetClasses as ImageNetClasses,
    ImageNetScores as ImageNetScores,
    imagenet_classes as imagenet_classes,
    load_imagenet as load_imagenet,
)
from .intents import TextData as TextData, load_intents as load_intents
from .loading import MissingFeaturesError as MissingFeaturesError, load_images as load_images
