// Threads that wait at the end of a parallel loop should spin briefly, then sleep.
//
// libgomp spins 300,000 times by default, some milliseconds. Where another process wants the same
// cores, the spinning thread keeps the very core that the thread it waits for needs: a training
// step then takes twice to thirteen times as long. A thousand turns (some 40 microseconds) lose
// nothing on an idle machine.
//
// libgomp reads its setting when it is loaded, before main(): so the program sets it and starts
// itself anew. The setting is taken back then, so that programs started by `exec` do not inherit
// it. One that the user made (OMP_WAIT_POLICY or GOMP_SPINCOUNT) is left alone.
#pragma once

namespace plimsoll::cli {

// Returns when there is nothing to do or the program could not be started anew; else does not
// return.
void bound_spinning(char** argv);

}  // namespace plimsoll::cli
