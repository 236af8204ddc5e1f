import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Certificate } from './certificates.ts'
import { endAfter, type Lifetime } from './cleanup.ts'
import { freePort } from './free-port.ts'
import { type Gateway, type GatewayConfig, type GatewayOptions, startGateway } from './gateway.ts'
import { type MockServer, startMockServer } from './mock-server.ts'

/** A gateway named `default` on one port. */
export type Routing = { gateway: Gateway; port: number }

/** Starts a gateway whose `default` gateway carries the routes; `more` are further sections. */
export async function routing(
  routes: readonly Record<string, unknown>[],
  more: GatewayConfig & { gateway?: object } = {},
  options: GatewayOptions = {},
): Promise<Routing> {
  const port = await freePort()
  const gateway = await startGateway(routingConfig(port, routes, more), options)
  return { gateway, port }
}

/**
 * As `routing`, with one gateway for all tests of a file: each call gives it another configuration, which
 * takes less time than starting one.
 */
export function sharedRouting(): typeof routing {
  let started: Routing | undefined
  return async (routes, more = {}) => {
    if (started === undefined) started = await routing(routes, more, { lifetime: 'file' })
    else await started.gateway.reload(routingConfig(started.port, routes, more))
    return started
  }
}

/** The configuration of `routing`, for reloads. */
export function routingConfig(
  port: number,
  routes: readonly Record<string, unknown>[],
  { gateway, ...more }: GatewayConfig & { gateway?: object } = {},
): GatewayConfig {
  return { ...more, gateways: { default: { port, ...gateway }, ...more.gateways }, routes }
}

/** A server that responds with its name, and records its requests. */
export function namedUpstream(
  name: string,
  lifetime: Lifetime = 'test',
): Promise<MockServer & { host: string }> {
  return startMockServer((_, response) => response.end(name), lifetime).then((server) => ({
    ...server,
    host: `127.0.0.1:${server.port}`,
  }))
}

/** Writes a certificate where a configuration can name it. */
export function certificateFiles(
  { cert, key }: Certificate,
  lifetime: Lifetime = 'test',
): { cert: string; key: string; write(next: Certificate): void } {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-certificate-'))
  const files = { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') }
  const write = (next: Certificate) => {
    writeFileSync(files.cert, next.cert)
    writeFileSync(files.key, next.key)
  }
  write({ cert, key })
  endAfter(lifetime, () => rmSync(folder, { recursive: true, force: true }))
  return { ...files, write }
}
