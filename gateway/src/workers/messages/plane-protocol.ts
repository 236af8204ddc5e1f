import type { MessagePort } from 'node:worker_threads'
import type { DataPlaneSettings } from '../../data-plane/data-plane.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { ApiRequest } from '../../resources/api/request.ts'

/** Start data of a thread with a data plane. */
export type ThreadStart = DataPlaneSettings & {
  plane: number
  planes: number
  hasLedger: boolean
  /** URL of the program of the thread pool. */
  poolUrl: string
}

/** Request to compile a configuration: chunks of its patch from the active one of the thread. */
export type PrepareRequest = {
  patch: readonly Uint8Array<ArrayBuffer>[]
  /** Port of the admin address. */
  adminPort: number
}

/** A prepared configuration: contents of the files that it names, and their fingerprint. */
export type Prepared = {
  files: ReadonlyMap<string, string>
  fingerprint: string
}

/** Result of a commit: the open addresses. */
export type Committed = { addresses: readonly string[] }

/**
 * A request to the admin API from `ui` on a gateway. `stream` transports a streaming response body; it is
 * closed at a disconnect of the client before the response. `upload` transports a streaming request body.
 */
export type PlaneApiRequest = Omit<ApiRequest, 'body' | 'cancellation'> & {
  body: Uint8Array | undefined
  stream: MessagePort
  upload?: MessagePort | undefined
}

export type PlaneApiReply = { status: number; headers: Headers; body: Uint8Array | 'stream' | undefined }

/** An address to listen on. */
export type AddressRequest = { host: string; port: number }
