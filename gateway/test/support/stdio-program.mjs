// A stdio target program that behaves, or misbehaves, as the method names.
import { spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import { createInterface } from 'node:readline'

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const stubborn = process.argv.includes('--stubborn')

if (stubborn) {
  process.on('SIGTERM', () => {})
  setInterval(() => {}, 60_000)
}

const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  switch (method) {
    case 'pid':
      say({ id, result: { pid: process.pid } })
      break
    case 'environment':
      say({ id, result: { names: Object.keys(process.env).sort(), arguments: process.argv.slice(2) } })
      break
    case 'grandchild': {
      const child = spawn(process.execPath, [
        '-e',
        'process.on("SIGTERM", () => {}); setInterval(() => {}, 60_000)',
      ])
      child.once('spawn', () => say({ id, result: { pid: child.pid } }))
      break
    }
    case 'crash':
      process.stderr.write('about to crash\n')
      process.exit(3)
      break
    case 'hang':
      break
    case 'deaf':
      closeSync(0)
      setInterval(() => {}, 60_000)
      break
    case 'busy':
      for (;;);
    case 'garbage':
      process.stdout.write('Server is listening\n\n{"half": \n[1,2]\n')
      say({ id, result: {} })
      break
    case 'chatter':
      setInterval(() => process.stdout.write('y\n'.repeat(1000)), 1)
      break
    case 'flood':
      setInterval(() => process.stdout.write('x'.repeat(1024 * 1024)), 1)
      break
    case 'many':
      for (let index = 0; index < params.count; index += 1) {
        say({
          method: 'notifications/progress',
          params: { progressToken: 't', index, text: 'x'.repeat(1000) },
        })
      }
      say({ id, result: { sent: params.count } })
      break
    case 'errors':
      process.stderr.write('one\ntwo\n'.repeat(params.count))
      say({ id, result: {} })
      break
    case 'initialize':
      say({
        id,
        result: {
          protocolVersion: params.protocolVersion,
          capabilities: {},
          serverInfo: { name: 'p', version: '1' },
        },
      })
      break
    default:
      if (id !== undefined) say({ id, result: { echoed: method ?? null } })
  }
})
