/* The referee of a game. */
#ifndef SIM_HEARING_H
#define SIM_HEARING_H

#include "tests/sim/game.h"

/* Plays until the outcome stands, through all the referee's lives. */
void sim_game_play(sim_game *game);
/* Frees what the referee had. */
void sim_game_forget(sim_game *game);

#endif
