import { randomBytes } from 'node:crypto'
import type { Config } from '../../src/config/schema.ts'
import {
  type CertificateAuthority,
  createCertificateAuthority,
  issueServerCertificate,
} from '../../src/kubernetes/stream/certificates/authority.ts'
import type { ConnectedProxy } from '../../src/kubernetes/stream/server/proxy-connections.ts'
import { createPublisher } from '../../src/kubernetes/stream/server/publisher.ts'
import { openStreamServer, type StreamServerTimes } from '../../src/kubernetes/stream/server/server.ts'
import { createTokenReviews } from '../../src/kubernetes/stream/server/token-review.ts'
import { createCachedVerification } from '../../src/kubernetes/stream/server/verify-token.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createYieldPoint } from '../../src/lib/scheduling/yielding.ts'
import { endAfter } from './cleanup.ts'
import { until } from './wait.ts'

/** The controller's end of the configuration stream, with a double of the API server's TokenReview. */
export type StreamController = {
  readonly port: number
  /** `https://localhost:PORT`. */
  readonly url: string
  readonly authority: CertificateAuthority
  publish(config: Config): Promise<string>
  /** Publishes and waits until a proxy acknowledges it. */
  serve(config: Config): Promise<string>
  proxies(): readonly ConnectedProxy[]
  close(): Promise<void>
}

export type StreamControllerOptions = {
  /** Of one that was closed: its port and authority. */
  again?: StreamController
  times?: Partial<StreamServerTimes>
}

/** The Gateway of the controller. Its service account is `infra/edge`. */
export const streamGateway = 'infra/edge'

/** Starts a controller; it ends with the test at the latest. */
export async function startStreamController({
  again,
  times,
}: StreamControllerOptions = {}): Promise<StreamController> {
  const tools = { now: Date.now(), randomBytes }
  const authority = again?.authority ?? createCertificateAuthority(tools)
  const publisher = createPublisher({ yieldPoint: createYieldPoint(systemClock), onProxyChange() {} })
  const server = await openStreamServer({
    publisher,
    verify: createCachedVerification({ verify: createTokenReviews(reviewToken), clock: systemClock }),
    serviceAccountOf: (gateway) => gateway.split('/')[1] ?? '',
    certificate: issueServerCertificate(authority, ['localhost'], tools),
    host: '127.0.0.1',
    port: again?.port ?? 0,
    clock: systemClock,
    log: { debug() {}, info() {}, warn() {}, error() {}, audit() {} },
    ...(times && { times }),
  })
  endAfter('test', server.close)
  const proxies = () => publisher.proxies(streamGateway)
  return {
    port: server.port,
    url: `https://localhost:${server.port}`,
    authority,
    publish: (config) => publisher.publish(streamGateway, config),
    async serve(config) {
      const version = await publisher.publish(streamGateway, config)
      await until(
        'a proxy serves the configuration',
        () => {
          const refused = proxies().find((proxy) => proxy.refused?.version === version)?.refused
          if (refused !== undefined) throw new Error(`refused: ${refused.errors.join()}`)
          return proxies().some((proxy) => proxy.serving === version)
        },
        45_000,
      )
      return version
    },
    proxies,
    close: server.close,
  }
}

/** A token as an API server creates them, unsigned: `sub` is its user. */
export function serviceAccountToken(subject: string, options: { audience?: string; lifeMs?: number } = {}) {
  const { audience = 'tollgate', lifeMs = 3_600_000 } = options
  const claims = { sub: subject, aud: [audience], exp: Math.floor((Date.now() + lifeMs) / 1_000) }
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${encode({ alg: 'none' })}.${encode(claims)}.signature`
}

export const ownToken = () => serviceAccountToken('system:serviceaccount:infra:edge')

/** Answers as the API server: authenticated if the audience is among those of the token. */
async function reviewToken(review: object): Promise<unknown> {
  const { spec }: { spec?: { token: string; audiences: string[] } } = review
  const [, claims = ''] = spec?.token.split('.') ?? []
  const { sub, aud }: { sub: string; aud: string[] } = JSON.parse(Buffer.from(claims, 'base64url').toString())
  const audiences = aud.filter((audience) => spec?.audiences.includes(audience))
  if (audiences.length === 0) return { status: { authenticated: false, error: 'wrong audience' } }
  return { status: { authenticated: true, user: { username: sub }, audiences } }
}
