import { api } from '../api/client.ts'
import type { ConfigRecord } from '../api/resources.ts'
import { messageOf } from '../components/feedback/error-state.tsx'
import { toast } from '../components/feedback/toasts.tsx'
import { hasMask } from '../schema-form/model/value.ts'
import { type Draft, putDraft, removeRecord, titleOf } from './requests.ts'

/** Announces a stored value, with Undo where the previous one can be restored. */
export function offerUndo(draft: Draft, now: ConfigRecord<unknown>, onDone: () => void): void {
  const { kind, record: before, value } = draft
  const title = titleOf(now)
  const undo = async () => {
    if (isInDatabase(now)) await revertLast(now, now.revision)
    else if (before === undefined) await removeRecord(now)
    else await putDraft({ kind, record: now, value: before.value }, { dryRun: false })
    return before === undefined ? `${title} removed again` : `${title} is as before`
  }
  // The file has no earlier secrets: only values whose secrets were retained can be restored.
  const isRestorable = isInDatabase(now) || before === undefined || masksOf(before.value) === masksOf(value)
  announce(
    before === undefined ? `${title} created` : `${title} saved`,
    isRestorable ? undo : undefined,
    onDone,
  )
}

/** Announces a deletion, with Undo where the record can be created again. */
export function offerRestore(record: ConfigRecord<unknown>, onDone: () => void): void {
  const title = titleOf(record)
  const restore = async () => {
    if (isInDatabase(record)) await revertLast(record, undefined)
    else await putDraft({ ...record, record: undefined }, { dryRun: false })
    return `${title} restored`
  }
  const isRestorable = isInDatabase(record) || !hasMask(record.value)
  announce(`${title} deleted`, isRestorable ? restore : undefined, onDone)
}

function announce(text: string, undo: (() => Promise<string>) | undefined, onDone: () => void): void {
  const run = async (reverse: () => Promise<string>) => {
    try {
      toast('good', await reverse())
    } catch (error) {
      toast('bad', `Undo was refused: ${messageOf(error)}`)
    }
    onDone()
  }
  toast('good', text, undo && { label: 'Undo', onSelect: () => void run(undo) })
}

/** Revisions of the database are numbers; those of the file are hashes. */
function isInDatabase({ revision }: ConfigRecord<unknown>): boolean {
  return typeof revision === 'number'
}

type History = { readonly records: readonly { readonly id: number; readonly revision?: number }[] }

/** Reverts the latest change of a record. The history of the database restores secrets too. */
async function revertLast(
  { kind, id }: ConfigRecord<unknown>,
  revision: number | string | undefined,
): Promise<void> {
  const { records } = await api<History>('/api/config/history', { query: { kind, id, limit: 1 } })
  const [latest] = records
  if (latest === undefined) throw new Error('the history has no record of the change')
  if (revision !== undefined && latest.revision !== revision) throw new Error('the record was changed again')
  await api(`/api/config/history/${latest.id}/revert`, { method: 'POST' })
}

/** The masked texts of a value, with their names. */
function masksOf(value: unknown): string {
  const masks: string[] = []
  JSON.stringify(value, (name, member) => {
    if (typeof member === 'string' && hasMask(member)) masks.push(`${name} ${member}`)
    return member
  })
  return masks.join('\n')
}
