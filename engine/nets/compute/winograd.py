"""3x3 convolutions by Winograd's minimal filtering, F(4x4, 3x3) and F(3x3, 3x3), for processors in float32.

A tile of m x m outputs depends on (m + 2) x (m + 2) inputs. Transformed (B^T d B), tile and filter need only be
multiplied point by point: 36 products instead of 144 for each pair of channels and tile of 4x4. Summed over the input
channels that is, for each of the 36 points, a product of a matrix of all tiles with a matrix of all filters, which is
what processors do best; another transformation (A^T m A) makes outputs of it. 5 x 5 tiles of 4x4 cover a 19x19 board:
900 products where a direct convolution takes 3,249. A 9x9 board is nine tiles of 3x3: 225 products instead of 729.

The kernels are in :mod:`engine.nets.compute.winograd_tiles`; networks that play call them by way of a program
(:mod:`engine.nets.compute.program`), networks that learn by :mod:`engine.nets.compute.winograd_learning`.

Source: Lavin & Gray, "Fast Algorithms for Convolutional Neural Networks", 2016, section 4.
"""

import torch
from torch import Tensor

from engine.nets.compute.lanes import WIDEST_PANEL, WIDTH
from engine.nets.compute.winograd_tiles import FOUR, THREE, padded

TILES = 40
"""Tiles that are multiplied at a time, at most, unless one board has more: a 19x19 board, or four 9x9 boards. Of 96
channels these have 350 kB of points and as much of products; with more boards they would not be in the second-level
cache any more when they are read again."""
FILTERINGS = {3: THREE, 4: FOUR}


def transform_filters(weight: Tensor, side: int) -> Tensor:
    """float32[P, C, K]: a convolution's weights[K, C, 3, 3] at all points, G g G^T, summed in float64.

    Args:
        side: m.
    """
    g = torch.tensor(FILTERINGS[side].filters, dtype=torch.float64)
    points = torch.einsum("ia,kcab,jb->ijck", g, weight.double(), g)
    return points.reshape(-1, weight.shape[1], weight.shape[0]).float()


def best_panel(count: int) -> int:
    """How many outputs of ``count`` are summed at a time: of what needs the least padding, the most."""
    return min((WIDEST_PANEL, 2 * WIDTH, WIDTH), key=lambda panel: (-(-count // panel) * panel, -panel))


def in_panels(points: Tensor) -> Tensor:
    """float32[P, K / panel, C, panel], both padded: filters[P, C, K] as :func:`multiply` of the kernels reads them."""
    count, inner, outer = points.shape
    panel = best_panel(outer)
    panels = -(-outer // panel)
    filled = points.new_zeros(count, padded(inner), panels * panel)
    filled[:, :inner, :outer] = points
    return filled.view(count, -1, panels, panel).transpose(1, 2).contiguous()


def group_of(tiles: int, most: int = TILES) -> int:
    """Boards of ``tiles`` x ``tiles`` that are multiplied at a time: at most ``most`` tiles in all, or one board."""
    return max(1, most // tiles**2)
