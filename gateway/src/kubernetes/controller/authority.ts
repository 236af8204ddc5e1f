import { isJsonObject } from '../../lib/json/json.ts'
import type { ApiClient } from '../client/client.ts'
import { hasStatus } from '../client/requests/api-error.ts'
import { readKinds } from '../objects/kinds.ts'
import {
  type CertificateAuthority,
  type CertificateTools,
  createCertificateAuthority,
  renewCertificateAuthority,
} from '../stream/certificates/authority.ts'

/** Place of the Secret with the authority. */
export type AuthorityPlace = { readonly namespace: string; readonly name: string }

const maxAttempts = 5

/**
 * Reads the authority of the configuration stream from its Secret, which all replicas share. Creates it, and
 * renews it in its last third.
 */
export async function loadAuthority(
  client: Pick<ApiClient, 'get' | 'create' | 'replace'>,
  { namespace, name }: AuthorityPlace,
  tools: CertificateTools,
): Promise<CertificateAuthority> {
  const place = { kind: readKinds.Secret, namespace, name }
  for (let attempt = 1; ; attempt++) {
    const secret = await client.get(place)
    const known = secret === undefined ? undefined : authorityOf(secret['data'])
    const authority =
      known === undefined ? createCertificateAuthority(tools) : renewCertificateAuthority(known, tools)
    if (authority === known) return authority
    const { certificate, key } = authority
    const body = {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata: secret?.metadata ?? { name, namespace },
      data: { 'tls.crt': encode(certificate), 'tls.key': encode(key) },
    }
    try {
      if (secret === undefined) await client.create(readKinds.Secret, body, namespace)
      else await client.replace(place, body)
      return authority
    } catch (error) {
      // Another replica was first.
      if (!hasStatus(error, 409) || attempt === maxAttempts) throw error
    }
  }
}

function authorityOf(data: unknown): CertificateAuthority | undefined {
  if (!isJsonObject(data)) return undefined
  const { 'tls.crt': certificate, 'tls.key': key } = data
  if (typeof certificate !== 'string' || typeof key !== 'string') return undefined
  return { certificate: decode(certificate), key: decode(key) }
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64')
}

function decode(text: string): string {
  return Buffer.from(text, 'base64').toString()
}
