/* The referee of a game. */
#ifndef SIM_HEARING_H
#define SIM_HEARING_H

#include "tests/sim/game.h"

/* Plays until there is an outcome, across all restarts of the referee. */
void sim_game_play(sim_game *game);
/* Frees the referee's memory. */
void sim_game_forget(sim_game *game);

#endif
