import { parseHostPort } from '../../../../lib/address/host-port.ts'
import type { Path } from '../../../../schema/path.ts'
import type { BackendPolicies } from '../../../../upstream/config.ts'
import type { BackendTlsConfig } from '../../../../upstream/connection-config.ts'
import type { BackendAuthConfig } from '../../../../upstream/credentials/config.ts'
import { isCredential } from '../../../../upstream/credentials/credential.ts'
import { secretCredential } from '../../../objects/secret-text.ts'
import { type AuthSettings, credentialKey, type TlsSettings } from '../../../own-kinds/backend-settings.ts'
import { fileValue } from '../../../own-kinds/enumerations.ts'
import type { AiSpec, GatewayBackendSpec } from '../../../own-kinds/gateway-backend.ts'
import { readCa, readKeyPair } from '../certificates.ts'
import { reportBroken, type Translation } from './findings.ts'

type Policies = NonNullable<GatewayBackendSpec['policies']>

/** Translates policies of servers to those of the file. Undefined fields are omitted. */
export function translatePolicies(
  { tls, auth, ...others }: Policies,
  path: Path,
  translation: Translation,
): BackendPolicies {
  const backendTLS = tls && translateTls(tls, [...path, 'tls'], translation)
  const backendAuth = auth && translateAuth(auth, [...path, 'auth'], translation)
  return { ...others, ...(backendTLS && { backendTLS }), ...(backendAuth && { backendAuth }) }
}

function translateTls(tls: TlsSettings, path: Path, translation: Translation): BackendTlsConfig {
  const { caCertificateRefs, clientCertificateRef, insecureSkipVerify, ...names } = tls
  const root =
    caCertificateRefs && readAuthorities(caCertificateRefs, [...path, 'caCertificateRefs'], translation)
  const pair =
    clientCertificateRef && readClient(clientCertificateRef, [...path, 'clientCertificateRef'], translation)
  return {
    ...names,
    ...(root !== undefined && { root: { inline: root } }),
    ...pair,
    ...(insecureSkipVerify === true && { insecure: true }),
  }
}

function readAuthorities(
  references: NonNullable<TlsSettings['caCertificateRefs']>,
  path: Path,
  translation: Translation,
): string {
  const { lookups } = translation
  const texts = references.map(({ kind = 'ConfigMap', name }, index) => {
    const found = kind === 'Secret' ? lookups.secret({ name }) : lookups.configMap(name)
    const reading =
      found.kind === 'missing' ? found : readCa(found.value, `${kind} ${lookups.namespace}/${name}`)
    if (reading.kind === 'text') return reading.text
    reportBroken(translation, [...path, index], { reason: 'InvalidRef', message: reading.message })
    return ''
  })
  return texts.join('\n')
}

function readClient(
  reference: NonNullable<TlsSettings['clientCertificateRef']>,
  path: Path,
  translation: Translation,
): Pick<BackendTlsConfig, 'cert' | 'key'> | undefined {
  const found = translation.lookups.secret(reference)
  if (found.kind === 'missing') {
    reportBroken(translation, path, found)
    return undefined
  }
  const reading = readKeyPair(found.value, placeOf(reference, translation))
  if (reading.kind === 'pair') return reading.pair
  reportBroken(translation, path, { reason: 'InvalidRef', message: reading.message })
  return undefined
}

/** Translates a credential. Messages never contain it. */
function translateAuth(
  { secretRef, passthrough, location }: AuthSettings,
  path: Path,
  translation: Translation,
): BackendAuthConfig | undefined {
  const common = location === undefined ? {} : { location }
  if (secretRef === undefined) return passthrough && { passthrough, ...common }
  const place = [...path, 'secretRef']
  const found = translation.lookups.secret(secretRef)
  if (found.kind === 'missing') {
    reportBroken(translation, place, found)
    return undefined
  }
  const { key: entry = credentialKey } = secretRef
  const key = secretCredential(found.value, entry)
  if (key !== undefined && isCredential(key)) return { key, ...common }
  const problem =
    key === undefined ? 'does not exist' : 'must be a credential: printable ASCII without spaces'
  const message = `entry ${entry} of ${placeOf(secretRef, translation)} ${problem}`
  reportBroken(translation, place, { reason: 'InvalidRef', message })
  return undefined
}

function placeOf(
  { name, namespace }: { readonly name: string; readonly namespace?: string | undefined },
  { lookups }: Translation,
): string {
  return `Secret ${namespace ?? lookups.namespace}/${name}`
}

type LlmPolicy = NonNullable<NonNullable<AiSpec['policies']>['ai']>

/** Translates the enumerations of LLM policies. */
export function translateLlmPolicy({ routes, ...others }: LlmPolicy) {
  if (routes === undefined) return others
  const entries = Object.entries(routes).map(([suffix, type]) => [suffix, fileValue(type)] as const)
  return { ...others, routes: Object.fromEntries(entries) }
}

/** The address of `host:port`. */
export function addressOf(hostPort: string): { readonly host: string; readonly port: number } {
  return parseHostPort(hostPort) ?? { host: hostPort, port: 0 }
}
