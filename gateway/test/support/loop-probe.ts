import { createServer } from 'node:http'
import { setInterval } from 'node:timers'

// Preloaded into the gateway's process (`--import`): measures the longest stretch of CPU time of its main
// thread between two turns of the event loop. CPU time, because a loaded machine stretches wall time. GET
// answers the longest since the last GET, in ms.

let longest = 0
let before = cpuMs()

setInterval(() => {
  const now = cpuMs()
  longest = Math.max(longest, now - before)
  before = now
}, 1).unref()

createServer((_request, response) => {
  // The turn of this request is one like any other: it is counted in the next interval.
  response.end(String(Math.max(longest, cpuMs() - before)))
  longest = 0
  before = cpuMs()
})
  .listen(Number(process.env['LOOP_PROBE_PORT']), '127.0.0.1')
  .unref()

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
