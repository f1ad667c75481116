/* Parts of making a plan. Private to verde/team. */
#ifndef VD_TEAM_PLAN_H
#define VD_TEAM_PLAN_H

#include "verde/team/spread.h"
#include "verde/team/team.h"

/* Fills in owner, sum_owner and leaf_owner. */
VD_MUST_USE vd_status vd_team_find_owners(vd_team_plan *plan, vd_err *err);
/* Fills in `reads` and the messages; needs the owners. */
VD_MUST_USE vd_status vd_team_find_messages(vd_team_plan *plan, vd_err *err);
vd_spread vd_team_spread(const vd_team_plan *plan, const vd_repeat *repeat);

#endif
