import type { ChildProcess } from 'node:child_process'
import { closeSync, ftruncateSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePorts } from '../../test/support/free-port.ts'
import { launch, type Subject, stop } from '../subjects/processes.ts'
import { isInstalled, readerFolder } from '../subjects/programs.ts'
import type { PeerCommand } from './command.ts'
import type { PeerDefinition, PeerStageName, PeerValues } from './definition.ts'
import { definitionOf } from './peers.ts'
import { fillTemplate, hasPlaceholder, type TemplateValues } from './template.ts'

export type Peer = Subject & {
  /** The last lines of its output. */
  output(): string
  /** Empties the log of the process. */
  truncateLog(): void
  end(): Promise<void>
}

export type PeerJob = {
  stage: PeerStageName
  upstreamPort: number
  /** Values of the templates beside ports and paths. */
  values: TemplateValues
  cpus: string | undefined
}

/** Products import thousands of files at start. */
const readyWithinMs = 120_000

/**
 * Starts a gateway installed by the reader in its own process group, with its configuration for a stage;
 * resolves once it is ready. The group ends with the benchmark, even if the benchmark is killed.
 */
export async function startPeer(command: PeerCommand, job: PeerJob): Promise<Peer> {
  const definition = definitionOf(command)
  const stage = definition.stages[job.stage]
  if (stage === undefined) throw new Error(`${command.name} has no configuration for ${job.stage}`)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-peer-'))
  const values = await valuesOf(folder, job, Object.keys(stage.files)[0])
  const all = { ...values, ...job.values, ...stage.values?.() }
  for (const [name, template] of Object.entries(stage.files)) {
    const place = `${definition.name}/${template}`
    const text = readFileSync(fileURLToPath(new URL(place, import.meta.url)), 'utf8')
    writeFileSync(join(folder, name), fillTemplate(text, all, place))
  }
  const logFile = join(folder, 'output.log')
  const log = openSync(logFile, 'a')
  const env = Object.entries(definition.env ?? {}).map(([name, value]) => [
    name,
    fillTemplate(value, all, name),
  ])
  const child = launch(commandLine(command, definition, all), {
    cpus: job.cpus,
    cwd: readerFolder(),
    env: { ...process.env, ...Object.fromEntries(env) },
    stdio: ['ignore', log, log],
  })
  const end = async () => {
    await stop(child)
    closeSync(log)
    rmSync(folder, { recursive: true, force: true })
  }
  const failure = await untilReady(child, definition, values)
  const output = () => readFileSync(logFile, 'utf8').trim().split('\n').slice(-20).join('\n')
  if (failure !== undefined) {
    const lines = output()
    await end()
    throw new Error(`peer ${command.name} ${failure}; its last output:\n${lines}`)
  }
  const { adapt } = stage
  return {
    name: command.name,
    port: values.port,
    child,
    ...(adapt && { adapt: (request) => adapt(request, values) }),
    output,
    truncateLog: () => ftruncateSync(log, 0),
    end,
  }
}

/** The reader's command with the arguments of the definition, unless it has placeholders of its own. */
function commandLine({ command }: PeerCommand, { args }: PeerDefinition, values: TemplateValues): string[] {
  const words = command.some(hasPlaceholder) ? command : [...command, ...args]
  return words.map((word) => fillTemplate(word, values, '--peer'))
}

async function valuesOf(folder: string, job: PeerJob, firstFile = ''): Promise<PeerValues> {
  const [port = 0, adminPort = 0, statsPort = 0, readinessPort = 0] = await freePorts(4)
  const { upstreamPort } = job
  const config = join(folder, firstFile)
  return { port, adminPort, statsPort, readinessPort, upstreamPort, folder, config }
}

/** Fails unless a peer has a configuration and its program is installed. */
export function requirePeer(peer: PeerCommand): void {
  const { install } = definitionOf(peer)
  const [program = ''] = peer.command
  if (isInstalled(program)) return
  const path = `/path/to/${program.split('/').at(-1)}`
  throw new Error(
    `the program "${program}" of peer ${peer.name} is not found: ${install}, or give its path, --peer "${peer.name}=${path}"`,
  )
}

/** The reason why a process does not become ready, or undefined once it is. */
async function untilReady(
  child: ChildProcess,
  { ready }: PeerDefinition,
  values: PeerValues,
): Promise<string | undefined> {
  const url = `http://127.0.0.1:${values[ready.port]}${ready.path}`
  const deadline = performance.now() + readyWithinMs
  while (performance.now() < deadline) {
    if (child.exitCode !== null || child.signalCode !== null) {
      return `ended with ${child.exitCode ?? child.signalCode} before it was ready`
    }
    const response = await fetch(url, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined)
    await response?.arrayBuffer().catch(() => undefined)
    if (response !== undefined && response.status < 500) return undefined
    await delay(100)
  }
  return `was not ready within ${readyWithinMs / 1000} s (${url})`
}
