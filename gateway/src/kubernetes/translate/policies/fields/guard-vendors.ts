import { messageOf } from '../../../../lib/thrown.ts'
import type { GuardConfig } from '../../../../policies/guardrails/config.ts'
import type { Path } from '../../../../schema/path.ts'
import type { BackendAuthConfig } from '../../../../upstream/credentials/config.ts'
import { isCredential } from '../../../../upstream/credentials/credential.ts'
import { parseCredential } from '../../../../upstream/credentials/google/credential-file.ts'
import { signingKeyProblem } from '../../../../upstream/credentials/signed-jwt.ts'
import { keyOf } from '../../../objects/meta.ts'
import { secretText } from '../../../objects/secret-text.ts'
import { fileValue } from '../../../own-kinds/enumerations.ts'
import { googleCredentialKey } from '../../../own-kinds/gateway-policy/guard-vendors.ts'
import type { Guard } from '../../../own-kinds/gateway-policy/guards.ts'
import type { Lookups } from '../lookups.ts'
import { type Part, type Problem, readCredential, unusable } from './connections.ts'
import { secretProblem } from './secret-problem.ts'

type Kind = 'openAIModeration' | 'azureContentSafety' | 'googleModelArmor' | 'bedrockGuardrails'
type Settings<K extends Kind> = NonNullable<Guard[K]>

/** Settings of a guard of a vendor in the file, and the problems of its credential. */
type Translated<K extends Kind> = {
  readonly settings: NonNullable<GuardConfig[K]>
  readonly problems: readonly Problem[]
}

type VendorGuard = Extract<Guard, { webhook?: undefined; regex?: undefined; presidio?: undefined }>

/** Translates a guard of a vendor at its path below `spec`. */
export function translateVendor(guard: VendorGuard, path: Path, lookups: Lookups) {
  const { openAIModeration, azureContentSafety, googleModelArmor, bedrockGuardrails } = guard
  if (openAIModeration !== undefined) {
    const at = [...path, 'openAIModeration']
    const { settings, problems } = translateModeration(openAIModeration, at, lookups)
    return { kind: { openAIModeration: settings }, problems }
  }
  if (azureContentSafety !== undefined) {
    const at = [...path, 'azureContentSafety']
    const { settings, problems } = translateContentSafety(azureContentSafety, at, lookups)
    return { kind: { azureContentSafety: settings }, problems }
  }
  if (googleModelArmor !== undefined) {
    const at = [...path, 'googleModelArmor']
    const { settings, problems } = translateModelArmor(googleModelArmor, at, lookups)
    return { kind: { googleModelArmor: settings }, problems }
  }
  const at = [...path, 'bedrockGuardrails']
  const { settings, problems } = translateBedrock(bedrockGuardrails, at, lookups)
  return { kind: { bedrockGuardrails: settings }, problems }
}

const writtenNames: ReadonlyMap<string | number, string> = new Map([
  ['guardrailIdentifier', 'identifier'],
  ['guardrailVersion', 'version'],
  ['backendAuth', 'auth'],
])

/** Name in the cluster of a field of a vendor. */
export function renameVendor(step: string | number): string | number {
  return writtenNames.get(step) ?? step
}

function translateModeration(
  { model, ...guard }: Settings<'openAIModeration'>,
  path: Path,
  lookups: Lookups,
): Translated<'openAIModeration'> {
  const { secretRef, location } = guard.policies.auth
  const key = readCredential(secretRef, [...path, ...secretPath], lookups)
  const auth = mapped(key, (value) => ({ key: value, ...(location && { location }) }))
  const { settings, problems } = commonOf(guard, auth)
  return { settings: { ...(model !== undefined && { model }), ...settings }, problems }
}

function translateContentSafety(
  { endpoint, failureMode, action, policies, ...analyses }: Settings<'azureContentSafety'>,
  path: Path,
  lookups: Lookups,
): Translated<'azureContentSafety'> {
  const key = readCredential(policies.auth.secretRef, [...path, ...secretPath], lookups)
  const auth = mapped(key, (value) => ({ key: value }))
  const { settings, problems } = commonOf({ failureMode, action, policies }, auth)
  const place = [...path, 'endpoint']
  // Other hosts, such as those of Services, require a reference and its grants.
  const mistake = { path: place, message: 'must be the host of a resource of Azure' }
  const wrong = isAzureHost(endpoint) ? [] : [{ mistakes: [mistake], unresolved: [] }]
  return { settings: { endpoint, ...analyses, ...settings }, problems: [...problems, ...wrong] }
}

function translateModelArmor(
  { projectId, templateId, location, ...guard }: Settings<'googleModelArmor'>,
  path: Path,
  lookups: Lookups,
): Translated<'googleModelArmor'> {
  const { secretRef } = guard.policies.auth.gcp
  const credential = readGoogleCredential(
    secretRef,
    [...path, 'policies', 'auth', 'gcp', 'secretRef'],
    lookups,
  )
  const auth = mapped(credential, (value) => ({ gcp: { credential: value } }))
  const { settings, problems } = commonOf(guard, auth)
  const names = { projectId, templateId, ...(location !== undefined && { location }) }
  return { settings: { ...names, ...settings }, problems }
}

function translateBedrock(
  { identifier, version, region, ...guard }: Settings<'bedrockGuardrails'>,
  path: Path,
  lookups: Lookups,
): Translated<'bedrockGuardrails'> {
  const { secretRef, aws } = guard.policies.auth
  const auth: Part<BackendAuthConfig> =
    secretRef === undefined
      ? mapped(
          readAccessKey(aws.secretRef, [...path, 'policies', 'auth', 'aws', 'secretRef'], lookups),
          (value) => ({ aws: { ...value, region } }),
        )
      : mapped(readCredential(secretRef, [...path, ...secretPath], lookups), (key) => ({ key }))
  const { settings, problems } = commonOf(guard, auth)
  return {
    settings: { guardrailIdentifier: identifier, guardrailVersion: version, region, ...settings },
    problems,
  }
}

const secretPath = ['policies', 'auth', 'secretRef']

function mapped<T, U>(part: Part<T>, map: (value: T) => U): Part<U> {
  return part.problem === undefined ? { value: map(part.value) } : part
}

/** Settings of all kinds. A policy with a problem refuses requests: its credential may be absent. */
function commonOf(
  {
    failureMode,
    action,
    policies: { auth: _, ...connection },
  }: Pick<Settings<Kind>, 'failureMode' | 'action' | 'policies'>,
  auth: Part<BackendAuthConfig>,
) {
  return {
    settings: {
      ...(failureMode && { failureMode: fileValue(failureMode) }),
      ...(action && { action: fileValue(action) }),
      policies: { ...connection, ...(auth.problem === undefined && { backendAuth: auth.value }) },
    },
    problems: auth.problem === undefined ? [] : [auth.problem],
  }
}

function isAzureHost(host: string): boolean {
  return /^[a-z0-9-]+\.(?:cognitiveservices\.azure\.(?:com|us|cn)|services\.ai\.azure\.com)$/i.test(host)
}

/** Reads an access key of AWS. */
function readAccessKey(
  reference: { readonly name: string; readonly namespace?: string | undefined },
  path: Path,
  lookups: Lookups,
) {
  const found = lookups.secret(reference)
  if (found.kind === 'missing') return { problem: secretProblem(found, path) }
  const entryOf = (entry: string) => secretText(found.object, entry)?.trim()
  const values = {
    accessKey: entryOf('accessKey') ?? '',
    secretKey: entryOf('secretKey') ?? '',
    sessionToken: entryOf('sessionToken'),
  }
  for (const [entry, value] of Object.entries(values)) {
    if (value !== undefined && !isCredential(value))
      return unusable(
        `entry ${entry} of Secret ${keyOf(found.object)} must be printable ASCII without spaces`,
        path,
      )
  }
  const { accessKey, secretKey, sessionToken } = values
  return {
    value: {
      accessKeyId: accessKey,
      secretAccessKey: secretKey,
      ...(sessionToken !== undefined && { sessionToken }),
    },
  }
}

/**
 * Reads a credential of Google. Types that read files of the proxy, and token services of others, are not
 * valid: the Secret is of the author of the policy.
 */
function readGoogleCredential(
  {
    key: entry = googleCredentialKey,
    ...reference
  }: { readonly name: string; readonly namespace?: string | undefined; readonly key?: string | undefined },
  path: Path,
  lookups: Lookups,
): Part<string> {
  const found = lookups.secret(reference)
  if (found.kind === 'missing') return { problem: secretProblem(found, path) }
  const text = secretText(found.object, entry) ?? ''
  const problem = googleProblem(text)
  return problem === undefined
    ? { value: text }
    : unusable(`entry ${entry} of Secret ${keyOf(found.object)}: ${problem}`, path)
}

function googleProblem(text: string): string | undefined {
  try {
    const credential = parseCredential(text)
    const { kind } = credential
    if (kind !== 'service_account' && kind !== 'authorized_user')
      return 'type must be service_account or authorized_user'
    if (!isGoogleUrl(credential.tokenUrl)) return 'token_uri must be an https URL below googleapis.com'
    // A key that cannot sign fails the compilation of the configuration of the proxy.
    const problem = kind === 'service_account' ? signingKeyProblem(credential.privateKey, 'RS256') : undefined
    return problem && `private_key: ${problem}`
  } catch (error) {
    return messageOf(error)
  }
}

function isGoogleUrl(text: string): boolean {
  const { protocol, hostname } = URL.parse(text) ?? { protocol: '', hostname: '' }
  return protocol === 'https:' && hostname.endsWith('.googleapis.com')
}
