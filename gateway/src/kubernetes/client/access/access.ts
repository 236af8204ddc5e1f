import type { TokenSource } from './token-file.ts'

/** Address and credentials of an API server. */
export type ApiAccess = {
  /** `https`, or `http` without credentials. */
  readonly server: URL
  /** Certificates of authorities, PEM; undefined for those of the runtime. */
  readonly authority: string | undefined
  /** Name in the certificate of the server, if it is not the host of `server`. */
  readonly serverName: string | undefined
  /** Client certificate, PEM. */
  readonly certificate: { readonly cert: string; readonly key: string } | undefined
  readonly token: TokenSource | undefined
  /** Namespace of the Pod, or of the context. */
  readonly namespace: string | undefined
}

/** An address or credential that cannot be used. The message names the place and the fix, and no secret. */
export class AccessError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'AccessError'
  }
}
