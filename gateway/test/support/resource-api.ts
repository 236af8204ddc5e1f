import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { endAfter } from './cleanup.ts'
import type { GatewayConfig } from './gateway.ts'
import { call } from './http-call.ts'

/** An answer of the config resource API. */
export type ApiAnswer = { status: number; body: unknown; headers: NodeJS.Dict<string | string[]> }

export type Envelope = {
  id: string
  kind: string
  name?: string
  value: Record<string, unknown>
  revision?: number
  createdAt?: string
  updatedAt?: string
  shadowed?: boolean
}

/** The API of a gateway as a client of bare HTTP sees it. Paths start behind `/api/config/resources`. */
export type ResourceApi = {
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiAnswer>
  /** Creates a record; fails when it is not stored. Secrets are shown. */
  create(kind: string, value: object): Promise<Envelope>
  /** Removes a record; fails when it is not there. */
  remove(kind: string, id: string): Promise<void>
  list(kind?: string): Promise<Envelope[]>
  /** A document beside the resources: `status`, `effective`. */
  document(name: string): Promise<unknown>
}

export function resourceApi({ adminPort }: { adminPort: number }): ResourceApi {
  const request = async (
    method: string,
    target: string,
    body?: unknown,
    headers = {},
  ): Promise<ApiAnswer> => {
    const answered = await call(adminPort, target, {
      method,
      host: `127.0.0.1:${adminPort}`,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: answered.status, body: JSON.parse(answered.text), headers: answered.headers }
  }
  const ask: ResourceApi['ask'] = (method, path, body, headers) =>
    request(method, `/api/config/resources${path}`, body, headers)
  return {
    ask,
    async create(kind, value) {
      const answer = await ask('PUT', `/${kind}?reveal=true`, { resources: [{ value }] })
      const [envelope] = envelopesIn(answer)
      if (envelope === undefined) throw new Error(`nothing was stored: ${JSON.stringify(answer.body)}`)
      return envelope
    },
    async remove(kind, id) {
      const answer = await ask('DELETE', `/${kind}/${encodeURIComponent(id)}`)
      expect(answer).toMatchObject({ status: 200, body: { status: 'success' } })
    },
    list: async (kind) =>
      envelopesIn(await ask('GET', `${kind === undefined ? '' : `/${kind}`}?reveal=true`)),
    document: async (name) => (await request('GET', `/api/config/${name}`)).body,
  }
}

/** The records of an answer; fails where there are none to be had. */
export function envelopesIn({ status, body }: ApiAnswer): Envelope[] {
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
  const { resources }: { resources: Envelope[] } = JSON.parse(JSON.stringify(body))
  return resources
}

/** A path for a database that is gone with the test file; the database itself is not made. */
export function sqliteUrl(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-sqlite-'))
  endAfter('file', () => rmSync(folder, { recursive: true, force: true }))
  return `sqlite://${join(folder, 'made', 'tollgate.db')}`
}

/** Puts a storage into a configuration; without a database it is the file. */
export function stored(config: GatewayConfig, url?: string, storage: object = {}): GatewayConfig {
  const where = url === undefined ? { mode: 'file' } : { mode: 'hybrid' }
  return {
    ...config,
    config: {
      ...config.config,
      storage: { ...where, ...storage },
      ...(url !== undefined && { database: { url } }),
    },
  }
}

/** Base configuration of most API tests: one model, and strict keys. */
export const keyedEcho: GatewayConfig = {
  llm: {
    models: [{ name: 'from-file', provider: 'echo' }],
    policies: { apiKey: { mode: 'strict', keys: [] } },
  },
}

/** The status of a chat completion with a key. */
export async function statusWith(
  gateway: { url: string },
  key: string,
  model = 'from-file',
): Promise<number> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
  })
  await response.arrayBuffer()
  return response.status
}
