// In place of MLX's header, which no kernel that is run here needs.
#pragma once
