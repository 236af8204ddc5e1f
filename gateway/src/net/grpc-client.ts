import type { PeerCertificate } from 'node:tls'
import type { ChannelCredentials, ChannelOptions, Client, experimental, ServiceError } from '@grpc/grpc-js'
import { formatHostPort, parseHostPort } from '../lib/address/host-port.ts'
import { anywhere, type EgressPolicy } from './egress/egress.ts'
import { createResolution, type Resolution } from './egress/resolution.ts'
import type { UpstreamTls } from './http-client/send.ts'
import { checkCertificateNames } from './tls/certificate-names.ts'

/** A gRPC server. Targets that are equal share a connection. */
export type GrpcTarget = {
  readonly host: string
  readonly port: number
  readonly tls: UpstreamTls | undefined
  /** Stands for all of `tls`. */
  readonly tlsKey: string
  /** Addresses the connection may lead to. */
  readonly egress: EgressPolicy
}

export type GrpcCallOptions = {
  readonly deadlineMs: number
}

/** Asks for one message with one message, both encoded. Rejects with a `GrpcError`. */
export type GrpcCall = (message: Uint8Array, options: GrpcCallOptions) => Promise<Uint8Array>

/** Why a call has no answer. */
export class GrpcError extends Error {
  /** Status by its number, as gRPC defines it: 4 deadline exceeded, 14 unavailable. */
  readonly status: number

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'GrpcError'
    this.status = status
  }
}

export type GrpcClient = {
  /** Calls of a method, by its path (`/package.Service/Method`). Connects with the first call. */
  method(target: GrpcTarget, path: string): GrpcCall
  /** Lets `drain` wait for work that is yet to make its calls. */
  trackPending(work: Promise<unknown>): void
  /** Resolves when nothing holds it open. */
  drain(): Promise<void>
  /** Ends every connection, and the calls on it. */
  close(): void
}

const channelOptions = {
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 2_000,
  // A connection may die without a word while calls wait on it.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
  // Connections to targets that are configured no more end by themselves.
  'grpc.client_idle_timeout_ms': 300_000,
  'grpc.max_receive_message_length': 64 * 1024,
  'grpc.service_config_disable_resolution': 1,
  'grpc.enable_channelz': 0,
  'grpc.enable_http_proxy': 0,
} as const

/** The words may be the server's, and end up in logs. */
const longestReason = 300

type Library = typeof import('@grpc/grpc-js')

/**
 * Owner of `@grpc/grpc-js`: one connection for each target, kept across reloads, with bounded back-off when it breaks.
 * The library is loaded once it is needed: it takes 20 MB, and most configurations call no such service.
 */
export function createGrpcClient(): GrpcClient {
  const clients = new Map<string, Client>()
  const held = new Set<Promise<unknown>>()
  let loading: Promise<Library> | undefined

  function clientOf(target: GrpcTarget, library: Library): Client {
    const key = `${target.host} ${target.port} ${target.tlsKey} ${target.egress.key}`
    const known = clients.get(key)
    if (known !== undefined) return known
    const created = connect(target, library)
    clients.set(key, created)
    return created
  }

  return {
    method(target, path) {
      loading ??= import('@grpc/grpc-js').then((library) => {
        registerGuardedScheme(library)
        return library
      })
      const loaded = loading
      let send: GrpcCall | undefined
      return async (message, options) => {
        if (send === undefined) {
          const library = await loaded
          send = withMoreTries(callsOf(clientOf(target, library), path, library))
        }
        return send(message, options)
      }
    },
    trackPending(work) {
      held.add(work)
      const release = () => held.delete(work)
      work.then(release, release)
    },
    async drain() {
      while (held.size > 0) await Promise.allSettled(held)
    },
    close() {
      for (const client of clients.values()) client.close()
      clients.clear()
    },
  }
}

function callsOf(client: Client, path: string, { Metadata }: Library): GrpcCall {
  return (message, { deadlineMs }) =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        asBuffer,
        unchanged,
        message,
        new Metadata(),
        { deadline: Date.now() + deadlineMs },
        (error: ServiceError | null, answer: Uint8Array | undefined) => {
          if (error === null && answer !== undefined) resolve(answer)
          else {
            const reason = (error?.details ?? 'no answer').slice(0, longestReason)
            reject(new GrpcError(error?.code ?? 13, reason, { cause: error }))
          }
        },
      )
    })
}

const maxTries = 5
const betweenTriesMs = 10

/**
 * A server that closes a connection refuses the streams that it has not looked at (RFC 9113 section 8.7), and they may be
 * asked again without counting twice. The library gives up on those that a closing connection had already taken.
 */
function withMoreTries(send: GrpcCall): GrpcCall {
  return async (message, { deadlineMs }) => {
    const endsAt = performance.now() + deadlineMs
    for (let tries = 1; ; tries += 1) {
      try {
        return await send(message, { deadlineMs: Math.max(1, endsAt - performance.now()) })
      } catch (error) {
        const isLast = tries === maxTries || performance.now() + betweenTriesMs >= endsAt
        if (isLast || !wasNotLookedAt(error)) throw error
      }
      await new Promise((resolve) => setTimeout(resolve, betweenTriesMs))
    }
  }
}

function wasNotLookedAt(error: unknown): boolean {
  return error instanceof GrpcError && /REFUSED_STREAM|Stream refused/.test(error.message)
}

function asBuffer(message: Uint8Array): Buffer {
  return Buffer.from(message.buffer, message.byteOffset, message.byteLength)
}

function unchanged(message: Buffer): Uint8Array {
  return message
}

/** Scheme of targets that are resolved under the egress policy of their channel. */
const guardedScheme = 'guarded'
/** Channel option with the policy: channels share connections only where all their options are the same. */
const egressOption = 'tollgate.egress'
const unavailable = 14

/** Replaces the name resolution of the library, which itself connects to the returned addresses only. */
function registerGuardedScheme({ experimental }: Library): void {
  const { registerResolver, statusOrFromError, statusOrFromValue } = experimental
  // A class, because the library calls `new`.
  class GuardedResolver implements experimental.Resolver {
    readonly updateResolution: () => void
    readonly destroy: () => void

    constructor(
      { path }: experimental.GrpcUri,
      listener: experimental.ResolverListener,
      options: ChannelOptions,
    ) {
      const address = parseHostPort(path) ?? { host: '', port: 0 }
      const resolution: Resolution = createResolution(address, { policy: policyOf(options) }, (resolved) => {
        if (resolved.kind === 'failed') {
          const details = resolved.error.message
          listener(statusOrFromError({ code: unavailable, details }), {}, null, '')
          return
        }
        const { port } = address
        const endpoints = resolved.addresses.map((host) => ({ addresses: [{ host, port }] }))
        listener(statusOrFromValue(endpoints), {}, null, '')
      })
      this.updateResolution = resolution.resolve
      this.destroy = resolution.cancel
    }

    static getDefaultAuthority({ path }: experimental.GrpcUri): string {
      return path
    }
  }
  registerResolver(guardedScheme, GuardedResolver)
}

function policyOf(options: ChannelOptions): EgressPolicy {
  const policy: EgressPolicy | undefined = options[egressOption]
  return policy ?? anywhere
}

function connect({ host, port, tls, egress }: GrpcTarget, { Client, credentials }: Library): Client {
  const name = tls?.serverName
  return new Client(`${guardedScheme}:${formatHostPort({ host, port })}`, credentialsOf(tls, credentials), {
    ...channelOptions,
    [egressOption]: egress,
    ...(name === undefined ? {} : { 'grpc.ssl_target_name_override': name, 'grpc.default_authority': name }),
  })
}

function credentialsOf(
  tls: UpstreamTls | undefined,
  credentials: Library['credentials'],
): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure()
  const { ca, cert, key, insecure, names } = tls
  const bytes = (text: string | undefined) => (text === undefined ? null : Buffer.from(text))
  return credentials.createSsl(bytes(ca), bytes(key), bytes(cert), {
    ...(insecure === 'any' ? { rejectUnauthorized: false } : {}),
    ...(insecure === 'any-name' ? { checkServerIdentity: () => undefined } : {}),
    ...(insecure === undefined && names !== undefined
      ? {
          checkServerIdentity: (_: string, certificate: PeerCertificate) =>
            checkCertificateNames(names, certificate),
        }
      : {}),
  })
}
