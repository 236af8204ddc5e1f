import type { Headers } from '../net/headers.ts'

/** The client of a request, as the peer or trusted proxies in front of it say. */
export type Client = {
  readonly address: string
  readonly scheme: 'http' | 'https'
  readonly host: string
}

/** Reads who a request comes from; `peer` is what the connection itself says. */
export type ClientReader = (headers: Headers, peer: Client) => Client
