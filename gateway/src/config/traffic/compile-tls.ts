import { messageOf } from '../../lib/thrown.ts'
import { createTlsIdentity, type ServerTls, type TlsIdentity } from '../../net/tls/server-tls.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { readPem } from '../../pipeline/pem-source.ts'
import { compileListenerTable } from '../../pipeline/routing/listener-table.ts'
import { formatPath } from '../../schema/path.ts'
import type { ListenerPlan } from './attachments.ts'

const versions = { TLS_V1_2: 'TLSv1.2', TLS_V1_3: 'TLSv1.3' } as const

/**
 * Compiles TLS of the listeners of one port; undefined for plain text. Throws with the scope of the error.
 */
export function compileServerTls(
  listeners: readonly ListenerPlan[],
  context: CompileContext,
  alpn: readonly string[],
): ServerTls | undefined {
  const identities = listeners.flatMap((listener) => {
    const target = compileTlsIdentity(listener, context)
    return target === undefined ? [] : [{ hostname: listener.hostname, target }]
  })
  const [only] = identities
  if (only === undefined) return undefined
  const identityOfHost = compileListenerTable(identities)
  // Without SNI the listener for all hosts applies; a single certificate applies to all.
  const unnamed = identityOfHost('') ?? (identities.length === 1 ? only.target : undefined)
  return {
    identityFor: (serverName) => (serverName === undefined ? unnamed : identityOfHost(serverName)),
    alpn,
  }
}

/** The identity of a listener; undefined for plain text. Cached by configuration node. */
export function compileTlsIdentity(
  { tls, path }: ListenerPlan,
  context: CompileContext,
): TlsIdentity | undefined {
  if (tls === undefined) return undefined
  return context.cached(tls, 'tls identity', () => {
    const { cert = '', key = '', root, minTLSVersion, maxTLSVersion, cipherSuites } = tls
    try {
      return createTlsIdentity({
        cert: readPem(cert, context),
        key: readPem(key, context),
        ca: root === undefined ? undefined : readPem(root, context),
        minVersion: minTLSVersion && versions[minTLSVersion],
        maxVersion: maxTLSVersion && versions[maxTLSVersion],
        cipherSuites,
        ticketSecret: context.processKey,
      })
    } catch (error) {
      const reason = messageOf(error)
      throw new Error(`${formatPath([...path, 'tls'])}: ${reason}`, { cause: error })
    }
  })
}
