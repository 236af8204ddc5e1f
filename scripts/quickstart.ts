import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

// `npm start`: runs the gateway on examples/quickstart.yaml and, once it answers, says what can be done with it.

const root = fileURLToPath(new URL('..', import.meta.url))
const adminStatus = 'http://127.0.0.1:15000/api/config/status'
const pollMs = 50

const banner = `
Tollgate is running.

  LLM endpoint  http://127.0.0.1:4000/v1   (models: echo and echo-*; key: tg-quickstart-key)
  Metrics       http://127.0.0.1:15020/metrics
  Readiness     http://127.0.0.1:15021/healthz/ready
  Admin         http://127.0.0.1:15000/api/config/status

Try it:

  curl http://127.0.0.1:4000/v1/chat/completions -H 'authorization: Bearer tg-quickstart-key' -H 'content-type: application/json' -d '{"model":"echo","messages":[{"role":"user","content":"Hello, Tollgate"}]}'

  curl -N http://127.0.0.1:4000/v1/chat/completions -H 'authorization: Bearer tg-quickstart-key' -H 'content-type: application/json' -d '{"model":"echo","stream":true,"messages":[{"role":"user","content":"Hello, Tollgate"}]}'

The configuration is examples/quickstart.yaml; changes to it apply at once. Stop with Ctrl+C.
One line per request follows.

`

const startedAt = Date.now()
const gateway = spawn(process.execPath, ['gateway/src/main.ts', '-f', 'examples/quickstart.yaml'], {
  cwd: root,
  stdio: 'inherit',
})
let running = true
gateway.on('exit', (code, signal) => {
  running = false
  process.exitCode = signal === null ? (code ?? 1) : 1
})
// At a terminal ^C reaches the whole process group: passing it on as well would count as a second, impatient one.
process.on('SIGINT', () => process.stdin.isTTY || gateway.kill('SIGINT'))
process.on('SIGTERM', () => gateway.kill('SIGTERM'))

while (running && !(await isServing())) await sleep(pollMs)
if (running) process.stdout.write(banner)

/** Another gateway may hold the admin port: only one that applied its configuration after our start is ours. */
async function isServing(): Promise<boolean> {
  try {
    const reply = await fetch(adminStatus)
    const status: unknown = await reply.json()
    if (typeof status !== 'object' || status === null || !('appliedAt' in status)) return false
    return Date.parse(String(status.appliedAt)) >= startedAt
  } catch {
    // Not listening yet, or not a gateway: its own error message tells when it cannot start.
    return false
  }
}
