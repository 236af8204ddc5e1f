import type { PeerCertificate } from 'node:tls'
import type { ChannelCredentials, ChannelOptions, Client, experimental, ServiceError } from '@grpc/grpc-js'
import { formatHostPort, parseHostPort } from '../lib/address/host-port.ts'
import { anywhere, type EgressPolicy } from './egress/egress.ts'
import { createResolution, type Resolution } from './egress/resolution.ts'
import type { UpstreamTls } from './http-client/send.ts'
import { checkCertificateNames } from './tls/certificate-names.ts'

/** A gRPC server. Equal targets share a connection. */
export type GrpcTarget = {
  readonly host: string
  readonly port: number
  readonly tls: UpstreamTls | undefined
  /** Represents all of `tls`. */
  readonly tlsKey: string
  /** Policy on the addresses of the connection. */
  readonly egress: EgressPolicy
}

export type GrpcCallOptions = {
  readonly deadlineMs: number
}

/** Unary call with encoded messages. Rejects with a `GrpcError`. */
export type GrpcCall = (message: Uint8Array, options: GrpcCallOptions) => Promise<Uint8Array>

/** Failure of a call. */
export class GrpcError extends Error {
  /** gRPC status code: 4 deadline exceeded, 14 unavailable. */
  readonly status: number

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'GrpcError'
    this.status = status
  }
}

export type GrpcClient = {
  /** Returns the unary call of a method path (`/package.Service/Method`). Connects on the first call. */
  method(target: GrpcTarget, path: string): GrpcCall
  /** Makes `drain` wait for work with calls still to make. */
  trackPending(work: Promise<unknown>): void
  /** Resolves when no tracked work is pending. */
  drain(): Promise<void>
  /** Closes every connection and fails its calls. */
  close(): void
}

const channelOptions = {
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 2_000,
  // Keep-alive probes detect dead connections during calls.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
  // Closes connections to targets that are no longer configured.
  'grpc.client_idle_timeout_ms': 300_000,
  'grpc.max_receive_message_length': 64 * 1024,
  'grpc.service_config_disable_resolution': 1,
  'grpc.enable_channelz': 0,
  'grpc.enable_http_proxy': 0,
} as const

/** Error details come from the server and are logged. */
const longestReason = 300

type Library = typeof import('@grpc/grpc-js')

/**
 * Owner of `@grpc/grpc-js`: one connection per target across reloads, with bounded back-off. The library is
 * loaded on first use: it takes 20 MB, and most configurations need no gRPC.
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
      loading ??= import('@grpc/grpc-js').then((loaded) => {
        const library = exportsOf(loaded)
        registerGuardedScheme(library)
        return library
      })
      const loaded = loading
      let send: GrpcCall | undefined
      return async (message, options) => {
        if (send === undefined) {
          const library = await loaded
          send = withRetries(callsOf(clientOf(target, library), path, library))
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

const maxAttempts = 5
const retryDelayMs = 10

/**
 * Repeats calls on refused streams. A closing server refuses unprocessed streams (RFC 9113 section 8.7),
 * which may be repeated without double counting. The library fails those already assigned to the closing
 * connection.
 */
function withRetries(send: GrpcCall): GrpcCall {
  return async (message, { deadlineMs }) => {
    const endsAt = performance.now() + deadlineMs
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await send(message, { deadlineMs: Math.max(1, endsAt - performance.now()) })
      } catch (error) {
        const isLast = attempt === maxAttempts || performance.now() + retryDelayMs >= endsAt
        if (isLast || !isRefusedStream(error)) throw error
      }
      await new Promise((resolve) => setTimeout(resolve, retryDelayMs))
    }
  }
}

function isRefusedStream(error: unknown): boolean {
  return error instanceof GrpcError && /REFUSED_STREAM|Stream refused/.test(error.message)
}

function asBuffer(message: Uint8Array): Buffer {
  return Buffer.from(message.buffer, message.byteOffset, message.byteLength)
}

/** Exports of a library in CommonJS: a bundle has them as members of the default export only. */
function exportsOf(loaded: Library & { readonly default?: Library }): Library {
  return loaded.default ?? loaded
}

function unchanged(message: Buffer): Uint8Array {
  return message
}

/** Scheme of targets resolved under the egress policy of their channel. */
const guardedScheme = 'guarded'
/** Channel option for the policy: channels share connections only with equal options. */
const egressOption = 'tollgate.egress'
const unavailable = 14

/** Replaces the name resolution of the library, which connects to the returned addresses only. */
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
