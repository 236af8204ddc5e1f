import { BroadcastChannel, isMainThread, workerData } from 'node:worker_threads'

// Loaded into the gateway with `NODE_OPTIONS=--import`: SIGUSR2 ends the data plane of TOLLGATE_TEST_PLANE
// by the error of TOLLGATE_TEST_END: `throw`, or `memory` for an exhausted heap.

const channel = new BroadcastChannel('end data plane')
channel.unref()
if (isMainThread) {
  process.on('SIGUSR2', () => channel.postMessage('end'))
} else if (workerData?.plane === Number(process.env.TOLLGATE_TEST_PLANE)) {
  channel.onmessage = () => {
    if (process.env.TOLLGATE_TEST_END !== 'memory') throw new Error('ended by a test')
    const rest = []
    for (;;) rest.push(new Array(100_000).fill({}).map(() => ({})))
  }
}
