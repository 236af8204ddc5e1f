import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { StreamStatus } from '../../src/config/live/stream-status.ts'
import type { Config } from '../../src/config/schema.ts'
import { endAfter } from './cleanup.ts'
import { freePorts } from './free-port.ts'
import { type Launched, launch } from './gateway.ts'
import { ownToken, type StreamController, streamGateway } from './stream-controller.ts'
import { until, within } from './wait.ts'

/** `tollgate proxy` as a process, with files and ports of its own. */
export type GatewayProxy = Launched & {
  readonly folder: string
  readonly ports: readonly number[]
  readonly port: number
  readonly url: string
  /** Adds the addresses of the process to a configuration. */
  config(config: Config): Config
  isReady(): Promise<boolean>
  ready(): Promise<void>
  /** `storage.stream` of the status. */
  status(): Promise<StreamStatus>
  metrics(): Promise<string>
  setToken(token: string): void
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<void>
}

export type ProxyOptions = {
  env?: Record<string, string>
  nodeFlags?: readonly string[]
  token?: string
  /** One that has ended: its folder and ports are taken over. */
  again?: GatewayProxy
}

export const proxySessionKey = 'c0'.repeat(32)

/** Starts a proxy without waiting for its readiness; it ends with the test at the latest. */
export async function startProxy(
  controller: StreamController,
  options: ProxyOptions = {},
): Promise<GatewayProxy> {
  const { again, env, nodeFlags, token } = options
  const folder = again?.folder ?? mkdtempSync(join(tmpdir(), 'tollgate-proxy-'))
  const ports = again?.ports ?? (await freePorts(4))
  const [port = 0, admin = 0, stats = 0, readiness = 0] = ports
  const tokenFile = join(folder, 'token')
  const caFile = join(folder, 'ca.pem')
  writeFileSync(tokenFile, token ?? ownToken())
  writeFileSync(caFile, controller.authority.certificate)
  const launched = launch(['proxy'], {
    cwd: folder,
    ...(nodeFlags && { nodeFlags }),
    env: {
      GATEWAY: streamGateway,
      CONTROLLER_URL: controller.url,
      CONTROLLER_CA_FILE: caFile,
      TOKEN_FILE: tokenFile,
      STATE_DIR: folder,
      SESSION_KEY: proxySessionKey,
      DRAIN_DELAY: '0s',
      ...env,
    },
  })
  const { child, exited } = launched
  endAfter('test', async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await exited
    }
    rmSync(folder, { recursive: true, force: true })
  })
  const isReady = async () => {
    const response = await fetch(`http://127.0.0.1:${readiness}/healthz/ready`).catch(() => undefined)
    return response?.status === 200
  }
  return {
    ...launched,
    folder,
    ports,
    port,
    url: `http://127.0.0.1:${port}`,
    config: (config) => ({
      ...config,
      config: {
        bindAddress: '127.0.0.1',
        adminAddr: `127.0.0.1:${admin}`,
        statsAddr: `127.0.0.1:${stats}`,
        readinessAddr: `127.0.0.1:${readiness}`,
        ...config.config,
      },
    }),
    isReady,
    async ready() {
      await until('the proxy is ready', isReady, 45_000)
    },
    async status() {
      const response = await fetch(`http://127.0.0.1:${admin}/api/config/status`)
      const { storage }: { storage: { stream: StreamStatus } } = JSON.parse(await response.text())
      return storage.stream
    },
    metrics: async () => (await fetch(`http://127.0.0.1:${stats}/metrics`)).text(),
    setToken: (next) => writeFileSync(tokenFile, next),
    async stop() {
      child.kill('SIGTERM')
      await within('the proxy ends after SIGTERM', exited, 30_000)
    },
  }
}
