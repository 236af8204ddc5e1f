import type { Headers } from '../../../net/http/headers.ts'

/**
 * Calls about objects that a provider stores: files, batches and uploads in parts of OpenAI, and files and
 * batches of Anthropic.
 */
export type ObjectEndpoint = 'files' | 'batches' | 'message_batches' | 'anthropic_files' | 'uploads'

/**
 * `content` is that of a file, or the results of a batch of Anthropic; `part` and `complete` are calls of an
 * upload in parts.
 */
export type ObjectAction = 'create' | 'list' | 'read' | 'delete' | 'cancel' | 'content' | 'part' | 'complete'

/** An object, or all of them, by the path of a call. */
export type ObjectPath = {
  readonly endpoint: ObjectEndpoint
  readonly id: string | undefined
  /** The path behind the id. */
  readonly tail: string
}

/** The object at a path behind the version, such as `/files/file-x/content`. */
export function objectAt(rest: string): ObjectPath | undefined {
  const [, name, id, tail = ''] = objectSyntax.exec(rest) ?? []
  const endpoint = name === undefined ? undefined : endpoints[name]
  if (endpoint === undefined) return undefined
  const path = { endpoint, id, tail }
  return Object.keys(actionsAt(path)).length === 0 ? undefined : path
}

const objectSyntax = /^\/(files|batches|messages\/batches|uploads)(?:\/([\w-]+)(\/[a-z]+)?)?$/

const endpoints: Readonly<Record<string, ObjectEndpoint>> = {
  files: 'files',
  batches: 'batches',
  'messages/batches': 'message_batches',
  uploads: 'uploads',
}

/** The object of a client: files of OpenAI and of Anthropic have the same paths. */
export function objectFor<T extends ObjectPath>(object: T, headers: Headers): T {
  if (object.endpoint !== 'files' || headers['anthropic-version'] === undefined) return object
  return { ...object, endpoint: 'anthropic_files' }
}

/** Whether a call is about files or batches. */
export function isObjectEndpoint(endpoint: string): endpoint is ObjectEndpoint {
  return Object.hasOwn(actions, endpoint)
}

/** Whether a call is about files. */
export function isOfFiles(endpoint: ObjectEndpoint): endpoint is FileEndpoint {
  return endpoint === 'files' || endpoint === 'anthropic_files'
}

export type FileEndpoint = 'files' | 'anthropic_files'

/** Actions by method. */
export function actionsAt({ endpoint, id, tail }: ObjectPath): Readonly<Record<string, ObjectAction>> {
  if (id === undefined) return endpoint === 'uploads' ? { POST: 'create' } : { GET: 'list', POST: 'create' }
  return actions[endpoint][tail] ?? {}
}

const fileActions = { '': { GET: 'read', DELETE: 'delete' }, '/content': { GET: 'content' } } as const

const actions: Readonly<Record<ObjectEndpoint, Readonly<Record<string, Record<string, ObjectAction>>>>> = {
  files: fileActions,
  anthropic_files: fileActions,
  batches: { '': { GET: 'read' }, '/cancel': { POST: 'cancel' } },
  message_batches: {
    '': { GET: 'read', DELETE: 'delete' },
    '/cancel': { POST: 'cancel' },
    '/results': { GET: 'content' },
  },
  uploads: {
    '/parts': { POST: 'part' },
    '/complete': { POST: 'complete' },
    '/cancel': { POST: 'cancel' },
  },
}
