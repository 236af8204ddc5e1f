import { createHash } from 'node:crypto'
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/support/free-port.ts'
import { cachedModel } from '../llm/workloads.ts'
import { launch, type Subject, stop } from './processes.ts'

export type Tollgate = Subject & {
  /** Folder of the run, where profiles are written as well. */
  folder: string
  adminPort: number
  /** Replaces the config file: by one with a further key, with other sections, or by any text. */
  reconfigure(change: { extraKey: string } | { sections: object } | { text: string }): void
  /** Empties the access log, which would otherwise grow by gigabytes. */
  truncateLog(): void
  end(): Promise<void>
}

export type TollgateOptions = {
  upstreamPort: number
  /** `llm.guardrails`, where guards are measured. */
  guardrails?: object
  /** Further members of `config`, for a run with files in this folder. */
  config?: (folder: string) => object
  /** `llm.models`, where others are measured than OpenAI's. */
  models?: readonly object[]
  /** Further members of `llm.policies`. */
  policies?: object
  /** The `mcp` section, where it is measured instead of the `llm` section. */
  mcp?: object
  /** The sections that serve the port, where others are measured than those. */
  sections?: (port: number) => object
  /** Flags of the runtime, for profiles and experiments. */
  nodeFlags?: readonly string[]
  /** The program to measure; by default that of `TOLLGATE_TEST_ENTRY`, or the source. */
  entry?: string | undefined
  /** `config.workerThreads`; the default of the program without it. */
  workers?: number | 'auto'
  /** Number of virtual keys, the key of the benchmark among them. */
  keyCount?: number
  /** CPUs of the process. */
  cpus?: string | undefined
}

/** The virtual key that the load generator presents. */
export const benchKey = 'tg-bench-key-0007'

/** Starts the gateway in the configuration that the speed targets speak of; resolves once it is ready. */
export async function startTollgate(options: TollgateOptions): Promise<Tollgate> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
  const port = await freePort()
  const admin = await freePort()
  const stats = await freePort()
  const readiness = await freePort()
  // The folder of the config file is watched; a log that grows in it would be noticed with every line.
  const configFolder = join(folder, 'config')
  mkdirSync(configFolder)
  const file = join(configFolder, 'config.yaml')
  const addresses = {
    bindAddress: '127.0.0.1',
    adminAddr: `127.0.0.1:${admin}`,
    statsAddr: `127.0.0.1:${stats}`,
    readinessAddr: `127.0.0.1:${readiness}`,
    ...(options.workers !== undefined && { workerThreads: options.workers }),
    ...options.config?.(folder),
  }
  const { mcp, guardrails } = options
  const textWith = (sections: object) => JSON.stringify({ config: addresses, ...sections }, undefined, 1)
  const llmSection = (extraKeys: readonly string[]) => ({
    llm: { port, ...llmConfig(options, extraKeys), ...(guardrails && { guardrails }) },
  })
  const sections = options.sections?.(port) ?? (mcp ? { mcp: { port, ...mcp } } : llmSection([]))
  writeFileSync(file, textWith(sections))

  function textOf(change: Parameters<Tollgate['reconfigure']>[0]): string {
    if ('text' in change) return change.text
    return textWith('sections' in change ? change.sections : llmSection([change.extraKey]))
  }

  const log = openSync(join(folder, 'access.log'), 'a')
  const source = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
  const entry = options.entry ?? process.env['TOLLGATE_TEST_ENTRY'] ?? source
  const command = [process.execPath, ...(options.nodeFlags ?? []), entry, '-f', file]
  const child = launch(command, { cpus: options.cpus, stdio: ['ignore', log, 'inherit'], cwd: folder })
  const end = async () => {
    await stop(child)
    closeSync(log)
    rmSync(folder, { recursive: true, force: true })
  }
  await ready(`http://127.0.0.1:${readiness}/healthz/ready`, () => child.exitCode)
  return {
    name: 'tollgate',
    port,
    child,
    folder,
    adminPort: admin,
    reconfigure(change) {
      writeFileSync(`${file}.next`, textOf(change))
      renameSync(`${file}.next`, file)
    },
    truncateLog: () => ftruncateSync(log, 0),
    end,
  }
}

function llmConfig(
  { upstreamPort, keyCount, policies, models }: TollgateOptions,
  extraKeys: readonly string[],
): object {
  const unlimited = 1_000_000_000
  const model = {
    provider: 'openai',
    params: { baseUrl: `http://127.0.0.1:${upstreamPort}/v1`, apiKey: 'sk-upstream' },
  }
  return {
    models: models ?? [
      { name: '*', ...model },
      { name: cachedModel, ...model, cache: { ttl: '1h' } },
    ],
    policies: {
      apiKey: {
        mode: 'strict',
        keys: [...benchKeys(keyCount).map(keyRecord), ...extraKeys.map((key) => ({ key }))],
      },
      authorization: { rules: ['apiKey.group == "platform" && request.path.startsWith("/v1/")'] },
      localRateLimit: [
        { requests: unlimited, unit: 'Seconds' },
        { requests: unlimited, unit: 'Hours', burst: 1000 },
        { tokens: unlimited, unit: 'Minutes' },
      ],
      ...policies,
    },
  }
}

/** Every virtual key of the configuration. */
export function benchKeys(count = 10_000): string[] {
  return Array.from({ length: count }, (_, index) => `tg-bench-key-${String(index).padStart(4, '0')}`)
}

/** A virtual key of the configuration by its hash, in the form that agentgateway reads as well. */
export function keyRecord(key: string, index: number): object {
  return {
    keyHash: `sha256:${createHash('sha256').update(key).digest('hex')}`,
    metadata: { id: `key-${index}`, name: `key ${index}`, group: 'platform' },
  }
}

/** Many keys on a loaded machine. */
const readyWithinMs = 120_000

async function ready(url: string, exitCode: () => number | null): Promise<void> {
  const deadline = Date.now() + readyWithinMs
  while (Date.now() < deadline) {
    if (exitCode() !== null) throw new Error(`tollgate ended with ${exitCode()} before it was ready`)
    const status = await fetch(url).then(
      (response) => response.status,
      () => 0,
    )
    if (status === 200) return
    await delay(50)
  }
  throw new Error(`tollgate was not ready within ${readyWithinMs / 1000} s`)
}
