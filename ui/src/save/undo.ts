import type { ConfigRecord } from '../api/resources.ts'
import { messageOf } from '../components/feedback/error-state.tsx'
import { toast } from '../components/feedback/toasts.tsx'
import { hasMask } from '../schema-form/model/value.ts'
import { type Draft, putDraft, removeRecord, titleOf } from './requests.ts'

/** Announces a stored change, with Undo where the previous value can be restored. */
export function offerUndo(draft: Draft, now: ConfigRecord<unknown>, onDone: () => void): void {
  const { record: before, value } = draft
  const title = titleOf(now)
  const undo = async () => {
    try {
      if (before === undefined) await removeRecord(now)
      else await putDraft({ kind: draft.kind, record: now, value: before.value }, { dryRun: false })
      toast('good', before === undefined ? `${title} removed again` : `${title} is as before`)
    } catch (error) {
      toast('bad', `Undo was refused: ${messageOf(error)}`)
    }
    onDone()
  }
  // A replaced secret is in no reply, so only values whose secrets were retained can be restored.
  const isRestorable = before === undefined || !hasMask(before.value) || sameMasks(before.value, value)
  const text = before === undefined ? `${title} created` : `${title} saved`
  toast('good', text, isRestorable ? { label: 'Undo', onSelect: () => void undo() } : undefined)
}

/** Whether the same texts are masked in both values. */
function sameMasks(before: unknown, after: unknown): boolean {
  return masksOf(before) === masksOf(after)
}

function masksOf(value: unknown): string {
  const masks: string[] = []
  JSON.stringify(value, (name, member) => {
    if (typeof member === 'string' && hasMask(member)) masks.push(`${name} ${member}`)
    return member
  })
  return masks.join('\n')
}
