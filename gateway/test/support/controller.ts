import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Config } from '../../src/config/schema.ts'
import { startStreamClient } from '../../src/kubernetes/stream/client/client.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createYieldPoint } from '../../src/lib/scheduling/yielding.ts'
import { endAfter } from './cleanup.ts'
import { freePorts } from './free-port.ts'
import type { KubernetesApi } from './kubernetes-api.ts'
import { serviceAccountToken } from './stream-controller.ts'
import { until } from './wait.ts'

/** A process of `tollgate controller`. */
export type ControllerProcess = {
  readonly streamPort: number
  isReady(): Promise<boolean>
  /** Resolves once it has read the cluster. */
  ready(): Promise<void>
  metrics(): Promise<string>
  stdout(): string
  /** Sends a signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<void>
}

const bundle = fileURLToPath(new URL('../../dist-test/tollgate.js', import.meta.url))
const source = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Starts a controller of the double; it ends with the test at the latest. */
export async function startController(api: KubernetesApi, identity: string): Promise<ControllerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-controller-'))
  const kubeconfig = join(folder, 'kubeconfig')
  writeFileSync(kubeconfig, api.kubeconfig())
  const [streamPort = 0, statsPort = 0, readinessPort = 0] = await freePorts(3)
  const args = [
    ...['controller', '--kubeconfig', kubeconfig, '--namespace', 'tollgate-system', '--identity', identity],
    ...['--listen', `127.0.0.1:${streamPort}`, '--stats', `127.0.0.1:${statsPort}`],
    ...['--readiness', `127.0.0.1:${readinessPort}`, '--controller-url', 'https://127.0.0.1:15012'],
    ...['--log-level', 'debug'],
  ]
  const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE } = process.env
  const child = spawn(process.execPath, [existsSync(bundle) ? bundle : source, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH, HOME, TMPDIR, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }) },
  })
  let stdout = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()))
  endAfter('test', async () => {
    child.kill('SIGKILL')
    await exited
    rmSync(folder, { recursive: true, force: true })
  })
  const isReady = async () => {
    if (child.exitCode !== null) throw new Error(`the controller ended: ${stdout.slice(-2_000)}`)
    const response = await fetch(`http://127.0.0.1:${readinessPort}/healthz/ready`).catch(() => undefined)
    return response?.status === 200
  }
  return {
    streamPort,
    isReady,
    ready: async () => void (await until('the controller is ready', isReady, 45_000)),
    metrics: async () => (await fetch(`http://127.0.0.1:${statsPort}/metrics`)).text(),
    stdout: () => stdout,
    async end(signal) {
      child.kill(signal)
      await exited
    },
  }
}

/** The receiving end of a proxy: acknowledges each configuration, or refuses it. */
export type FakeProxy = {
  readonly configs: readonly Config[]
  /** Errors of the next configurations; none accepts them. */
  refuse(errors: readonly string[]): void
}

/** Connects to a controller as a proxy of a Gateway, with a token that the double accepts. */
export async function connectProxy(
  api: KubernetesApi,
  { streamPort }: ControllerProcess,
  { namespace, name, account }: { namespace: string; name: string; account: string },
): Promise<FakeProxy> {
  const username = `system:serviceaccount:${namespace}:${account}`
  const token = serviceAccountToken(username)
  api.addToken(token, { username, audiences: ['tollgate'] })
  const authority = await until('the authority', () => {
    const data = api.get('Secret', 'tollgate-system', 'tollgate-controller-ca')?.['data']
    return typeof data === 'object' && data !== null ? String(Reflect.get(data, 'tls.crt')) : undefined
  })
  const configs: Config[] = []
  let errors: readonly string[] = []
  const client = startStreamClient({
    url: `https://127.0.0.1:${streamPort}`,
    gateway: `${namespace}/${name}`,
    proxy: 'proxy-0',
    id: randomBytes(16).toString('base64url'),
    start: undefined,
    readCa: async () => Buffer.from(authority, 'base64').toString(),
    readToken: async () => token,
    async apply({ config }) {
      await delay(0)
      configs.push(config)
      return errors.length === 0 ? { kind: 'accepted' } : { kind: 'refused', errors }
    },
    onState() {},
    onConfirmed() {},
    clock: systemClock,
    random: Math.random,
    log: { debug() {}, info() {}, warn() {}, error() {}, audit() {} },
    yieldPoint: createYieldPoint(systemClock),
    times: { firstRetryMs: 50, maxRetryMs: 200 },
  })
  endAfter('test', client.close)
  return {
    configs,
    refuse(next) {
      errors = next
    },
  }
}
