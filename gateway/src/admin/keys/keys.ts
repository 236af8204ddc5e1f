import type { Config } from '../../config/schema.ts'
import { QueryRefused } from '../../ledger/query/query.ts'
import { largeJson } from '../../resources/api/replies.ts'
import { refusal } from '../../resources/change/change.ts'
import type { AdminCall, AdminEndpoint, AdminResult } from '../api.ts'
import { type KeyEntry, keyEntries } from './key-entries.ts'
import { keyQueryParameters, readKeyQuery, selectPage } from './key-list.ts'
import { readKeyUsage } from './key-usage.ts'
import { viewKey } from './key-view.ts'
import type { KeysContext, KeysOptions } from './keys-options.ts'
import { rotateKey } from './rotate-key.ts'

/** Endpoints of virtual keys: list, details with usage, rotation. */
export function keyEndpoints(given: KeysOptions): AdminEndpoint[] {
  const options: KeysContext = { ...given, derivedIds: new WeakMap() }
  return [
    {
      path: '/api/keys',
      methods: { GET: { query: keyQueryParameters, respond: (call) => listKeys(call, options) } },
    },
    { path: '/api/keys/{id}', methods: { GET: { respond: (call) => getKey(call, options) } } },
    { path: '/api/keys/{id}/rotate', methods: { POST: { respond: (call) => rotateKey(call, options) } } },
  ]
}

async function listKeys({ query }: AdminCall, options: KeysContext): Promise<AdminResult> {
  const read = readKeyQuery(query)
  if (read.kind === 'invalid') return refusal(400, read.message)
  const { clock, yieldPoint } = options
  const { entries, next } = await selectPage(entriesOf(options), read, clock.now(), yieldPoint)
  const lastUsed = await readLastUsed(entries, options)
  const keys: object[] = []
  for (const entry of entries) {
    const pause = yieldPoint()
    if (pause) await pause
    keys.push(view(entry, lastUsed.get(entry.id), options))
  }
  const reply = await largeJson({ keys, nextCursor: next }, { yieldPoint })
  return { kind: 'reply', reply }
}

async function getKey({ parameters }: AdminCall, options: KeysContext): Promise<AdminResult> {
  const id = parameters.get('id') ?? ''
  for (const entry of entriesOf(options)) {
    const pause = options.yieldPoint()
    if (pause) await pause
    if (entry.id !== id) continue
    const lastUsed = await readLastUsed([entry], options)
    const usage = await readKeyUsage(id, options)
    return { kind: 'json', value: { ...view(entry, lastUsed.get(id), options), usage } }
  }
  return refusal(404, `key not found: ${id.slice(0, 200)}`)
}

function entriesOf({ resources, derivedIds }: KeysContext): Iterable<KeyEntry> {
  // The guard: the active configuration was validated.
  return keyEntries(resources.effective().config as Config, derivedIds)
}

function view(entry: KeyEntry, lastUsedMs: number | undefined, { resources, clock }: KeysOptions) {
  // Keys of Secrets, in a cluster.
  const source = resources.effective().objectOf === undefined ? 'file' : 'object'
  return viewKey(entry, { resources, source, nowMs: clock.now(), lastUsedMs })
}

/** Times of the last use. Keys are listed without them while the ledger does not respond. */
async function readLastUsed(
  entries: readonly KeyEntry[],
  { ledger }: KeysOptions,
): Promise<ReadonlyMap<string, number>> {
  if (ledger === undefined || entries.length === 0) return new Map()
  try {
    return await ledger.readKeysUsed(entries.map(({ id }) => id))
  } catch (error) {
    if (error instanceof QueryRefused) return new Map()
    throw error
  }
}
