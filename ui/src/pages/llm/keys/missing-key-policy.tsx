import { Button } from '../../../components/action/button.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { useSave } from '../../../save/save.tsx'

/** Explains that keys need the policy `apiKey`, and creates it. */
export function MissingKeyPolicy({ onCreated }: { onCreated(): void }) {
  const { save, busy, dialog } = useSave('llm.policy')
  const create = async () => {
    const outcome = await save({ record: undefined, name: 'apiKey', value: { mode: 'strict' } })
    if (outcome.kind === 'saved') onCreated()
  }
  return (
    <>
      <Notice
        tone="warn"
        title="The LLM endpoint does not authenticate by keys yet"
        action={
          <Button size="small" busy={busy} onClick={() => void create()}>
            Require keys
          </Button>
        }
      >
        Keys need the policy apiKey. From then on, requests without a valid key are refused.
      </Notice>
      {dialog}
    </>
  )
}
