/* Waiting jobs. Askers take turns: an asker's turn is as old as its first waiting job. It starts
 * waiting anew when one of its jobs is taken, and again when that is done. So each job is passed by
 * at most one job of every other asker, and by none of an asker whose job was running when it
 * came. */
#include <string.h>

#include "verde/net/server_internal.h"

void vd_jobs_append(vd_job_queue *queue, vd_job *job) {
    vd_job **at = &queue->first;
    while (*at)
        at = &(*at)->next;
    *at = job;
    job->next = NULL;
    queue->count++;
}

bool vd_jobs_remove(vd_job_queue *queue, vd_job *job) {
    vd_job **at = &queue->first;
    while (*at && *at != job)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = job->next;
    job->next = NULL;
    queue->count--;
    return true;
}

static bool same_asker(const vd_job *a, const vd_job *b) {
    return memcmp(&a->asker, &b->asker, sizeof a->asker) == 0;
}

static void wait_since(vd_job_queue *queue, const vd_job *like, uint64_t turn) {
    for (vd_job *job = queue->first; job; job = job->next)
        if (same_asker(job, like))
            job->turn = turn;
}

vd_job *vd_jobs_take(vd_job_queue *queue) {
    vd_job *found = queue->first;
    for (vd_job *job = queue->first; job; job = job->next)
        if (job->turn < found->turn)
            found = job;
    if (!found)
        return NULL;
    vd_jobs_remove(queue, found);
    wait_since(queue, found, ++queue->turn);
    return found;
}

void vd_jobs_done(vd_job_queue *queue, const vd_job *job) {
    wait_since(queue, job, ++queue->turn);
}

/* The number of an asker's waiting jobs, and the first and last of them. */
typedef struct {
    int count;
    vd_job *first, *last;
} holding;

static holding held_by(const vd_job_queue *queue, const vd_job *like) {
    holding h = {0};
    for (vd_job *job = queue->first; job; job = job->next) {
        if (!same_asker(job, like))
            continue;
        h.first = h.count++ ? h.first : job;
        h.last = job;
    }
    return h;
}

static holding largest(const vd_job_queue *queue) {
    holding most = {0};
    for (const vd_job *job = queue->first; job; job = job->next) {
        holding h = held_by(queue, job);
        most = h.count > most.count ? h : most;
    }
    return most;
}

vd_job *vd_jobs_insert(vd_job_queue *queue, vd_job *job, int queue_max) {
    const holding own = held_by(queue, job), most = largest(queue);
    const bool full = queue->count >= queue_max;
    if (own.count >= VD_NET_ASKER_MAX || (full && most.count <= own.count + 1))
        return job;
    if (full)
        vd_jobs_remove(queue, most.last);
    job->turn = own.first ? own.first->turn : ++queue->turn;
    vd_jobs_append(queue, job);
    return full ? most.last : NULL;
}
