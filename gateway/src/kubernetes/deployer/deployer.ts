import { hash } from 'node:crypto'
import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'
import { messageOf } from '../../lib/thrown.ts'
import { printable } from '../../schema/printable.ts'
import type { Gateway } from '../objects/gateway-api.ts'
import type { ApiKind } from '../objects/kinds.ts'
import { keyOf } from '../objects/meta.ts'
import type { GatewayParametersSpec } from '../own-kinds/gateway-parameters.ts'
import { type DeployedKind, deployedKindNames, deployedKinds } from './deployed-kinds.ts'
import { gatewayNameLabel, labelValue, sessionSecretName } from './names.ts'
import { type DeployedObject, render } from './render.ts'
import type { DeploySettings } from './render-input.ts'

/** An object of the API as it is there. */
export type LiveObject = JsonObject & { readonly metadata: JsonObject & { readonly name: string } }

/** The calls of the API client that a deployment uses. Every failure is thrown. */
export type DeployClient = {
  list(
    kind: ApiKind,
    options: { readonly namespace: string; readonly labelSelector: string },
  ): Promise<{ readonly items: readonly LiveObject[] }>
  get(place: Place): Promise<LiveObject | undefined>
  apply(kind: ApiKind, object: AppliedObject, fieldManager: string): Promise<LiveObject>
  remove(place: Place, options: { readonly uid?: string | undefined }): Promise<boolean>
}

type Place = { readonly kind: ApiKind; readonly namespace: string; readonly name: string }
type AppliedObject = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace: string }
}

export type Deployment =
  | {
      readonly kind: 'deployed'
      readonly deployment: LiveObject | undefined
      readonly service: LiveObject | undefined
    }
  /** Message for the condition, reason DeploymentFailed. The caller tries again. */
  | { readonly kind: 'failed'; readonly message: string }

export type Deployer = {
  /** Creates and updates the objects of a Gateway, and removes those that it no longer has. */
  deploy(gateway: Gateway, parameters: GatewayParametersSpec): Promise<Deployment>
  /** Removes all objects of a Gateway that another controller has taken over. */
  withdraw(gateway: Gateway): Promise<Deployment>
}

export type DeployerOptions = {
  readonly client: DeployClient
  readonly settings: DeploySettings
  readonly randomBytes: (length: number) => Buffer
}

const fieldManager = 'tollgate-controller'
/** Manager of `replicas` between the end of a fixed number and the first change of an autoscaler. */
const replicasManager = 'tollgate-replicas'
/** Hash of the applied object: marks the objects of deployers and shows that fields were removed. */
const appliedAnnotation = 'tollgate.dev/applied'
/** Whether the applied object had `replicas`. */
const replicasAnnotation = 'tollgate.dev/replicas'
const sessionKeyBytes = 32

/**
 * Creates a deployer. Objects that do not belong to the Gateway are never changed; an error of one object
 * does not stop the others.
 */
export function createDeployer({ client, settings, randomBytes }: DeployerOptions): Deployer {
  async function reconcile(
    gateway: Gateway,
    objectsOf: (live: LiveObjects) => readonly DeployedObject[],
  ): Promise<Deployment> {
    try {
      const live = await listLive(client, gateway)
      const objects = objectsOf(live)
      const collisions = await addUnlabelled(client, gateway, { live, objects })
      if (collisions.length > 0) return failed(collisions)
      const applied = await applyAll(client, live, objects)
      const mistakes = [...applied.mistakes, ...(await prune(client, gateway, { live, objects }))]
      if (mistakes.length > 0) return failed(mistakes)
      return { kind: 'deployed', deployment: applied.of('Deployment'), service: applied.of('Service') }
    } catch (error) {
      return failed([messageOf(error)])
    }
  }

  return {
    deploy: (gateway, parameters) =>
      reconcile(gateway, (live) => {
        const known = sessionKeyOf(gateway, live)
        const sessionKey = known ?? randomBytes(sessionKeyBytes).toString('hex')
        return render({ gateway, parameters, settings, sessionKey }).map(withAnnotations)
      }),
    withdraw: (gateway) => reconcile(gateway, () => []),
  }
}

/** Objects by `<kind>/<name>`. */
type LiveObjects = Map<string, LiveObject>
type Change = { readonly live: LiveObjects; readonly objects: readonly DeployedObject[] }

function failed(messages: readonly string[]): Deployment {
  return { kind: 'failed', message: printable(messages.join('; ')) }
}

async function listLive(client: DeployClient, gateway: Gateway): Promise<LiveObjects> {
  const options = {
    namespace: namespaceOf(gateway),
    labelSelector: `${gatewayNameLabel}=${labelValue(gateway.metadata.name)}`,
  }
  const lists = await Promise.all(
    deployedKindNames.map(async (kind) => {
      const { items } = await client.list(deployedKinds[kind], options)
      return items.map((item): [string, LiveObject] => [`${kind}/${item.metadata.name}`, item])
    }),
  )
  return new Map(lists.flat())
}

function namespaceOf({ metadata }: Gateway): string {
  return metadata.namespace ?? 'default'
}

/** Adds objects without the label of the Gateway, and returns a message for each that belongs to others. */
async function addUnlabelled(
  client: DeployClient,
  gateway: Gateway,
  { live, objects }: Change,
): Promise<string[]> {
  const messages = await Promise.all(
    objects.map(async ({ kind, metadata: { namespace, name } }) => {
      const id = `${kind}/${name}`
      const found = live.get(id) ?? (await client.get({ kind: deployedKinds[kind], namespace, name }))
      if (found === undefined) return []
      live.set(id, found)
      return collision(gateway, kind, found)
    }),
  )
  return messages.flat()
}

function collision(gateway: Gateway, kind: DeployedKind, found: LiveObject): string[] {
  const name = `${kind} ${namespaceOf(gateway)}/${found.metadata.name}`
  if (found.metadata['deletionTimestamp'] !== undefined) return [`${name} is being deleted`]
  if (isOwned(gateway, found)) return []
  return [`${name} does not belong to Gateway ${keyOf(gateway)}: delete or rename it`]
}

function isOwned({ metadata }: Gateway, found: LiveObject): boolean {
  const { ownerReferences } = found.metadata
  return (
    Array.isArray(ownerReferences) &&
    ownerReferences.some((owner) => isJsonObject(owner) && owner['uid'] === metadata.uid)
  )
}

/**
 * Whether a deployer has applied an object. Other controllers use the same label and owner for the objects of
 * their Gateways.
 */
function isApplied({ metadata: { annotations } }: LiveObject): boolean {
  return isJsonObject(annotations) && annotations[appliedAnnotation] !== undefined
}

/** The key of an existing Secret, which is never replaced. */
function sessionKeyOf(gateway: Gateway, live: LiveObjects): string | undefined {
  const secret = live.get(`Secret/${sessionSecretName(gateway)}`)
  const data = secret?.['data']
  const key = isJsonObject(data) ? data['key'] : undefined
  if (typeof key !== 'string' || secret === undefined || !isOwned(gateway, secret)) return undefined
  const text = Buffer.from(key, 'base64').toString()
  return text === '' ? undefined : text
}

function withAnnotations(object: DeployedObject): DeployedObject {
  const { metadata } = object
  const spec = object['spec']
  const replicas = isJsonObject(spec) && object.kind === 'Deployment' ? spec['replicas'] : undefined
  const annotations = {
    ...metadata.annotations,
    ...(replicas === undefined ? {} : { [replicasAnnotation]: 'fixed' }),
    [appliedAnnotation]: hash('sha256', JSON.stringify(object), 'hex').slice(0, 16),
  }
  return { ...object, metadata: { ...metadata, annotations } }
}

type Applied = {
  readonly mistakes: readonly string[]
  of(kind: DeployedKind): LiveObject | undefined
}

/** In sequence: Pods need their account and their volumes. */
async function applyAll(
  client: DeployClient,
  live: LiveObjects,
  objects: readonly DeployedObject[],
): Promise<Applied> {
  const mistakes: string[] = []
  const results = new Map<DeployedKind, LiveObject>()
  for (const object of objects) {
    const before = live.get(`${object.kind}/${object.metadata.name}`)
    try {
      // Items of lists have no version and kind.
      const { apiVersion: _, kind: __, ...fields } = object
      const isCurrent = before !== undefined && contains(before, fields)
      results.set(object.kind, isCurrent ? before : await applyOne(client, object, before))
    } catch (error) {
      mistakes.push(`${object.kind} ${object.metadata.name}: ${messageOf(error)}`)
    }
  }
  return { mistakes, of: (kind) => results.get(kind) }
}

async function applyOne(
  client: DeployClient,
  object: DeployedObject,
  before: LiveObject | undefined,
): Promise<LiveObject> {
  const kind = deployedKinds[object.kind]
  const kept = before === undefined ? undefined : replicasToKeep(object, before)
  if (kept !== undefined) {
    const { apiVersion, metadata } = object
    const { name, namespace } = metadata
    const scaled = { apiVersion, kind: object.kind, metadata: { name, namespace }, spec: { replicas: kept } }
    await client.apply(kind, scaled, replicasManager)
  }
  return client.apply(kind, object, fieldManager)
}

/**
 * The number of replicas that another owner must hold before this one stops to apply it, because the API
 * server would set the default of 1.
 */
function replicasToKeep(object: DeployedObject, before: LiveObject): number | undefined {
  if (object.kind !== 'Deployment' || object.metadata.annotations?.[replicasAnnotation] !== undefined) {
    return undefined
  }
  const { annotations } = before.metadata
  const isFixed = isJsonObject(annotations) && annotations[replicasAnnotation] !== undefined
  const spec = before['spec']
  const replicas = isJsonObject(spec) ? spec['replicas'] : undefined
  return isFixed && typeof replicas === 'number' ? replicas : undefined
}

/** Whether a live value has all that is wanted; the API server adds defaults, others add their fields. */
function contains(live: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(live) &&
      live.length === wanted.length &&
      wanted.every((item, index) => contains(live[index], item))
    )
  }
  if (!isJsonObject(wanted)) return live === wanted
  return isJsonObject(live) && Object.entries(wanted).every(([key, value]) => contains(live[key], value))
}

/** Removes objects of the Gateway that are no longer wanted; returns a message for each failure. */
async function prune(client: DeployClient, gateway: Gateway, { live, objects }: Change): Promise<string[]> {
  const wanted = new Set(objects.map(({ kind, metadata }) => `${kind}/${metadata.name}`))
  const messages = await Promise.all(
    [...live].map(async ([id, object]) => {
      if (wanted.has(id) || !isOwned(gateway, object) || !isApplied(object)) return []
      const kind = id.slice(0, id.indexOf('/')) as DeployedKind
      const { name, uid } = object.metadata
      const place = { kind: deployedKinds[kind], namespace: namespaceOf(gateway), name }
      try {
        await client.remove(place, { uid: typeof uid === 'string' ? uid : undefined })
        return []
      } catch (error) {
        return [`${kind} ${name}: ${messageOf(error)}`]
      }
    }),
  )
  return messages.flat()
}
