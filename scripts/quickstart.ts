import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { ensureUi } from './build-ui.ts'
import { keyVariable, quickstartKey } from './quickstart-key.ts'

// `npm start`: runs the gateway on examples/quickstart.yaml, or on a variant of it (`npm start FILE`), and
// prints sample commands once the gateway serves. `npm start -- -f FILE` runs the gateway itself on any file
// (run.mjs).

type Quickstart = {
  config: { bindAddress: string; adminAddr?: string; statsAddr: string; readinessAddr: string }
  llm: { port: number; models: { name: string }[]; policies: { apiKey: { keys: { key: string }[] } } }
  mcp: { port: number; targets: { name: string }[] }
}

const pollMs = 50
const root = fileURLToPath(new URL('..', import.meta.url))
process.chdir(root)

const { argv, env } = process
// npm runs scripts in the top folder; the file may be named from where the user stands.
const file =
  argv[2] === undefined
    ? 'examples/quickstart.yaml'
    : fileURLToPath(new URL(argv[2], `file://${env['INIT_CWD'] ?? root}/`))
const { config, llm, mcp } = readQuickstart(file)
const admin = config.adminAddr ?? '127.0.0.1:15000'

try {
  await ensureUi()
} catch (error) {
  process.stderr.write(
    `the console is not built: ${error instanceof Error ? error.message : String(error)}\n`,
  )
}
const startedAt = Date.now()
const key = env[keyVariable] ?? readKey(env['TOLLGATE_DATA'] ?? '.tollgate')
const gateway = spawn(process.execPath, ['gateway/src/main.ts', '-f', file], {
  stdio: 'inherit',
  env: { ...env, [keyVariable]: key },
})
let running = true
gateway.on('exit', (code, signal) => {
  running = false
  process.exitCode = signal === null ? (code ?? 1) : 1
})
// An unexpected error here must not leave the gateway on its ports.
process.on('exit', () => gateway.kill('SIGTERM'))
// At a terminal ^C reaches the whole process group: passing it on as well would count as a second, impatient
// one.
process.on('SIGINT', () => process.stdin.isTTY || gateway.kill('SIGINT'))
process.on('SIGTERM', () => gateway.kill('SIGTERM'))

while (running && !(await isServing())) await sleep(pollMs)
if (running) process.stdout.write(banner())

/**
 * The file's sections, or exit 1 before anything is started. The gateway itself reports mistakes within them.
 */
function readQuickstart(path: string): Quickstart {
  const problem = (text: string) => {
    process.stderr.write(`${path}: ${text}\n`)
    process.exit(1)
  }
  try {
    const document: Partial<Quickstart> | null = parse(readFileSync(path, 'utf8'))
    const { config, llm, mcp } = document ?? {}
    if (config && llm?.models && llm.policies?.apiKey?.keys && mcp?.targets) return { config, llm, mcp }
    return problem(`is not a variant of examples/quickstart.yaml; run it with: npm start -- -f ${path}`)
  } catch (error) {
    return problem(error instanceof Error ? error.message : String(error))
  }
}

/** The key of the quickstart, or exit 1. */
function readKey(folder: string): string {
  try {
    return quickstartKey(folder)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }
}

/**
 * Another gateway may own the admin port: only one that applied its configuration after our start is ours.
 */
async function isServing(): Promise<boolean> {
  try {
    const reply = await fetch(`http://${admin}/api/config/status`)
    const status: unknown = await reply.json()
    if (typeof status !== 'object' || status === null || !('appliedAt' in status)) return false
    return Date.parse(String(status.appliedAt)) >= startedAt
  } catch {
    // Not listening yet, or not a gateway: the gateway reports a failed start itself.
    return false
  }
}

function banner(): string {
  const endpoint = `http://${config.bindAddress}:${llm.port}/v1`
  const mcpEndpoint = `http://${config.bindAddress}:${mcp.port}/mcp`
  const [model] = llm.models
  const [entry] = llm.policies.apiKey.keys
  const firstKey = entry?.key.replace(`\${${keyVariable}}`, key)
  const ask = (options: string, fields: object, key = firstKey) => {
    const body = { model: model?.name, ...fields, messages: [{ role: 'user', content: 'Hello, Tollgate' }] }
    const headers = `-H 'authorization: Bearer ${key}' -H 'content-type: application/json'`
    return `curl ${options} ${endpoint}/chat/completions ${headers} -d '${JSON.stringify(body)}'`
  }
  const send = (options: string, message: object) => {
    const headers = "-H 'content-type: application/json' -H 'accept: application/json, text/event-stream'"
    return `curl ${options} ${mcpEndpoint} ${headers} -d '${JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })}'`
  }
  const clientInfo = { name: 'curl', version: '1' }
  const initialize = {
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo },
  }
  const call = { method: 'tools/call', params: { name: 'add', arguments: { a: 2, b: 3 } } }
  const keys = `http://${admin}/api/config/resources/llm.apiKey`
  const newKey = 'tg-my-own-key'
  const record = { resources: [{ value: { key: newKey, metadata: { name: 'me' } } }] }
  const create = `curl -s -X PUT ${keys} -H 'content-type: application/json' -d '${JSON.stringify(record)}'`
  return `
Tollgate is running.

  LLM endpoint  ${endpoint}   (models: ${llm.models.map(({ name }) => name).join(', ')}; key: ${firstKey})
  MCP endpoint  ${mcpEndpoint}   (targets: ${mcp.targets.map(({ name }) => name).join(', ')})
  Metrics       http://${config.statsAddr}/metrics
  Readiness     http://${config.readinessAddr}/healthz/ready
  Console       http://${admin}/ui/
  Admin         http://${admin}/api/config/status

Ask a model, with the limits in the headers, and as a stream:

  ${ask('-i', {})}

  ${ask('-N', { stream: true })}

Begin an MCP session, and call a tool in it:

  session=$(${send('-sD - -o /dev/null', initialize)} | tr -d '\\r' | sed -n 's/^mcp-session-id: //p')

  ${send('-H "mcp-session-id: $session"', call)}

Create a key of your own, use it, and delete it:

  id=$(${create} | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')

  ${ask('-i', {}, newKey)}

  curl -X DELETE ${keys}/$id

The configuration is ${file}; changes to it apply at once. Stop with Ctrl+C.
One line for each request follows.

`
}
