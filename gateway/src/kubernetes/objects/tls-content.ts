import { messageOf } from '../../lib/thrown.ts'
import { createTlsIdentity } from '../../net/tls/server-tls.ts'
import type { Secret } from './core.ts'
import { secretText } from './secret-text.ts'

/** A certificate with its key, as nodes of the Config. */
export type KeyPair = { readonly cert: { inline: string }; readonly key: { inline: string } }

/** The key pair of a Secret, the missing keys of its data, or the mistake in their content. */
export type KeyPairContent =
  | { readonly kind: 'pair'; readonly pair: KeyPair }
  | { readonly kind: 'missing'; readonly keys: readonly string[] }
  | { readonly kind: 'malformed'; readonly message: string }

/** Reads `tls.crt` and `tls.key` of a Secret. Messages never contain the content. */
export function keyPairOf(secret: Secret): KeyPairContent {
  const cert = secretText(secret, 'tls.crt')
  const key = secretText(secret, 'tls.key')
  if (!cert || !key) {
    const keys = [...(cert ? [] : ['tls.crt']), ...(key ? [] : ['tls.key'])]
    return { kind: 'missing', keys }
  }
  try {
    createTlsIdentity({ cert, key })
  } catch (error) {
    return { kind: 'malformed', message: messageOf(error) }
  }
  return { kind: 'pair', pair: { cert: { inline: cert }, key: { inline: key } } }
}
