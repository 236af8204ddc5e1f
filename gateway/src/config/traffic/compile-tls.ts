import { randomBytes } from 'node:crypto'
import { messageOf } from '../../lib/thrown.ts'
import { createDynamicTls } from '../../net/tls/dynamic-ca.ts'
import { createTlsIdentity, type ListenerTls, type ServerTls } from '../../net/tls/server-tls.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { readPem } from '../../pipeline/pem-source.ts'
import { compileListenerTable } from '../../pipeline/routing/listener-table.ts'
import { formatPath } from '../../schema/path.ts'
import { type FrontendTlsConfig, handshakeLimitOf } from '../frontend/connections.ts'
import { tlsVersionsOf } from '../frontend/tls-fields.ts'
import type { ListenerPlan } from './attachments.ts'

/** Compilation with the TLS settings of all listeners. */
export type TlsContext = CompileContext & { readonly frontendTls?: FrontendTlsConfig | undefined }

type TlsPlan = Pick<ListenerPlan, 'hostname' | 'path' | 'tls'>

const versions = { TLS_V1_2: 'TLSv1.2', TLS_V1_3: 'TLSv1.3' } as const

/**
 * Compiles TLS of the listeners of one port; undefined if none terminates it. Beside listeners with TLS,
 * those without pass it through. Throws with the scope of the error.
 */
export function compileServerTls(
  listeners: readonly TlsPlan[],
  context: TlsContext,
  alpn: readonly string[],
): ServerTls | undefined {
  const targets = listeners.map((listener) => ({
    hostname: listener.hostname,
    target: compileListenerTls(listener, context) ?? passThrough,
  }))
  const [only] = targets
  if (only === undefined || targets.every(({ target }) => target === passThrough)) return undefined
  const listenerOf = compileListenerTable(targets)
  // Without SNI the listener for all hosts applies; a single certificate applies to all.
  const unnamed = listenerOf('') ?? (targets.length === 1 ? only.target : undefined)
  const find = (serverName: string | undefined) =>
    serverName === undefined ? unnamed : listenerOf(serverName)
  return {
    identityFor: (serverName) => find(serverName)?.identityFor(serverName),
    ...(targets.some(({ target }) => target === passThrough)
      ? { passesThrough: (serverName: string | undefined) => find(serverName) === passThrough }
      : {}),
    alpn: alpn.length === 0 ? alpn : (context.frontendTls?.alpn ?? alpn),
    handshakeLimitMs: handshakeLimitOf(context.frontendTls),
  }
}

/** Stands for listeners whose TLS ends at the backend. */
const passThrough: ListenerTls = { demands: '', identityFor: () => undefined }

/** TLS of a listener; undefined for plain text. Cached by configuration node. */
export function compileListenerTls({ tls, path }: TlsPlan, context: TlsContext): ListenerTls | undefined {
  if (tls === undefined) return undefined
  const { frontendTls = {} } = context
  return context.cached(tls, `tls of listener ${JSON.stringify(frontendTls)}`, () => {
    const { cert = '', key = '', root } = tls
    const { cipherSuites = tls.cipherSuites, keyExchangeGroups = tls.keyExchangeGroups } = frontendTls
    const versionsOfListener = tlsVersionsOf(tls)
    const { minVersion: min = versionsOfListener.min, maxVersion: max = versionsOfListener.max } = frontendTls
    try {
      const options = {
        cert: readPem(cert, context),
        key: readPem(key, context),
        ca: root === undefined ? undefined : readPem(root, context),
        minVersion: min && versions[min],
        maxVersion: max && versions[max],
        cipherSuites,
        groups: keyExchangeGroups?.map((group) => group.replace('_', '')),
        ticketSecret: context.processKey,
      }
      if (tls.mode === 'dynamicCa')
        return createDynamicTls(options, {
          now: context.clock.now,
          randomBytes,
          onExpired: () =>
            context.log.error(
              { path: formatPath([...path, 'tls', 'cert']) },
              'handshakes refused: authority of dynamicCa expired',
            ),
        })
      const identity = createTlsIdentity(options)
      return { demands: identity.demands, identityFor: () => identity }
    } catch (error) {
      const reason = messageOf(error)
      throw new Error(`${formatPath([...path, 'tls'])}: ${reason}`, { cause: error })
    }
  })
}
