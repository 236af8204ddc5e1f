import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { stop, stopAll, track } from '../../bench/subjects/processes.ts'
import { freePort } from '../support/free-port.ts'

/**
 * Kills the gateway at random moments while keys are created, changed and deleted through its API. Every
 * acknowledged write survives, none survives in part, and the stored state always starts.
 */

const short = process.argv.includes('--short')
const killsPerStorage = short ? 5 : 500
const longestLifeMs = 400
const startLimitMs = 20_000

type Storage = 'file' | 'sqlite'

/** A gateway's place on disk, and its ports, which stay the same. */
type Place = { folder: string; file: string; port: number; admin: number; readiness: number }

/** Acknowledged state: the name of each key by its id. */
type Answered = Map<string, string>

/** A write that was sent and not answered: it may be there or not. */
type Unanswered = { id: string | undefined; name: string | undefined } | undefined

const comment = '# kept by every write'

async function createPlace(storage: Storage): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-kills-'))
  const file = join(folder, 'config.yaml')
  const [port, admin, stats, readiness] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ]
  const database =
    storage === 'file'
      ? ['  storage: { mode: file }']
      : ['  storage: { mode: hybrid }', `  database: { url: 'sqlite://${join(folder, 'tollgate.db')}' }`]
  const lines = [
    'config:',
    '  bindAddress: 127.0.0.1',
    `  adminAddr: 127.0.0.1:${admin}`,
    `  statsAddr: 127.0.0.1:${stats}`,
    `  readinessAddr: 127.0.0.1:${readiness}`,
    ...database,
    'llm:',
    `  port: ${port} ${comment}`,
    '  models:',
    '    - { name: echo, provider: echo }',
    '  policies:',
    '    apiKey:',
    '      mode: strict',
    '      keys: []',
    '',
  ]
  writeFileSync(file, lines.join('\n'))
  return { folder, file, port, admin, readiness }
}

async function start({ file, folder, readiness }: Place): Promise<ChildProcess> {
  const entry =
    process.env['TOLLGATE_TEST_ENTRY'] ?? fileURLToPath(new URL('../../src/main.ts', import.meta.url))
  const child = track(
    spawn(process.execPath, [entry, '-f', file], { stdio: ['ignore', 'ignore', 'inherit'], cwd: folder }),
  )
  const deadline = Date.now() + startLimitMs
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`it does not start again: exit code ${child.exitCode}`)
    const ready = await fetch(`http://127.0.0.1:${readiness}/healthz/ready`).catch(() => undefined)
    if (ready?.status === 200) return child
    await delay(20)
  }
  throw new Error(`it was not ready within ${startLimitMs} ms`)
}

async function ask(place: Place, method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${place.admin}/api/config/${path}`, {
    method,
    ...(body !== undefined && {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  })
  const answer: unknown = await response.json()
  if (response.status !== 200)
    throw new Refused(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`)
  return answer
}

/** A forbidden response, as opposed to none. */
class Refused extends Error {}

/** Writes until the gateway is gone; resolves with the write that was not answered. */
async function writeUntilKilled(place: Place, answered: Answered, nameOf: () => string): Promise<Unanswered> {
  for (;;) {
    const known = [...answered.keys()]
    const id = known[Math.floor(Math.random() * known.length)]
    const choice = Math.random()
    const name = nameOf()
    const value = { key: `tg-${name}`, metadata: { name } }
    try {
      if (id === undefined || choice < 0.5) {
        const made = await ask(place, 'PUT', 'resources/llm.apiKey', { resources: [{ value }] })
        answered.set(firstId(made), name)
      } else if (choice < 0.75) {
        await ask(place, 'PUT', `resources/llm.apiKey/${id}`, { value })
        answered.set(id, name)
      } else {
        await ask(place, 'DELETE', `resources/llm.apiKey/${id}`)
        answered.delete(id)
      }
    } catch (error) {
      if (error instanceof Refused) throw error
      if (id === undefined || choice < 0.5) return { id: undefined, name }
      return { id, name: choice < 0.75 ? name : undefined }
    }
  }
}

function firstId(answer: unknown): string {
  const { resources }: { resources: { id: string }[] } = JSON.parse(JSON.stringify(answer))
  return resources[0]?.id ?? ''
}

/** Active state: the name of each key by its id. */
async function running(place: Place): Promise<Answered> {
  const effective = JSON.stringify(await ask(place, 'GET', 'effective'))
  const { config }: { config: { llm: { policies: { apiKey: { keys: Key[] } } } } } = JSON.parse(effective)
  return new Map(config.llm.policies.apiKey.keys.map(({ metadata }) => [metadata.id, metadata.name]))
}

type Key = { metadata: { id: string; name: string } }

/** Fails unless the active state is the acknowledged one, apart from the unacknowledged write. */
function compare(now: Answered, answered: Answered, unanswered: Unanswered): void {
  for (const [id, name] of answered) {
    const found = now.get(id)
    if (found === name) continue
    const isOpen = unanswered !== undefined && unanswered.id === id && found === unanswered.name
    if (!isOpen) throw new Error(`the key ${id} is ${found ?? 'gone'}, and was answered to be ${name}`)
  }
  for (const [id, name] of now) {
    if (answered.has(id)) continue
    const isOpen = unanswered !== undefined && unanswered.id === undefined && unanswered.name === name
    if (!isOpen) throw new Error(`there is a key ${id} (${name}) that nobody was answered about`)
  }
}

async function statusOf(place: Place, name: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${place.port}/v1/models`, {
    headers: { authorization: `Bearer tg-${name}` },
  })
  await response.arrayBuffer()
  return response.status
}

async function campaign(storage: Storage): Promise<void> {
  const place = await createPlace(storage)
  let answered: Answered = new Map()
  let names = 0
  let writes = 0
  let made = 0
  const nameOf = () => {
    names += 1
    return `key-${names}`
  }
  let child = await start(place)
  for (let kill = 0; kill < killsPerStorage; kill++) {
    const before = names
    const life = delay(20 + Math.random() * longestLifeMs).then(() => child.kill('SIGKILL'))
    const exited = once(child, 'exit')
    const unanswered = await writeUntilKilled(place, answered, nameOf)
    await Promise.all([life, exited])
    writes += names - before
    child = await start(place)
    const now = await running(place)
    compare(now, answered, unanswered)
    if (unanswered?.name !== undefined && [...now.values()].includes(unanswered.name)) made += 1
    answered = now
    const [name] = answered.values()
    if (name !== undefined && (await statusOf(place, name)) !== 200) throw new Error(`${name} does not work`)
    if (!readFileSync(place.file, 'utf8').includes(comment)) throw new Error('a comment of the file is gone')
    // Deleting accumulated records makes rounds equal.
    for (const id of [...answered.keys()].slice(50)) {
      await ask(place, 'DELETE', `resources/llm.apiKey/${id}`)
      answered.delete(id)
    }
  }
  await stop(child)
  const left = readdirSync(place.folder)
  rmSync(place.folder, { recursive: true })
  process.stdout.write(
    `${storage}: ${killsPerStorage} kills during ${writes} writes; ${made} came through unanswered\n`,
  )
  // The file, the database, its log and its index; and remains of a kill, which the next start removes.
  if (left.length > 8) throw new Error(`files stay behind: ${left.join(', ')}`)
}

try {
  for (const storage of ['file', 'sqlite'] as const) await campaign(storage)
} finally {
  await stopAll()
}
