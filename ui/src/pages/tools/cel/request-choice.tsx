import { X } from 'lucide-react'
import { useState } from 'react'
import { useWhoami } from '../../../api/whoami.ts'
import { Button } from '../../../components/action/button.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Input } from '../../../components/form/input.tsx'

/** Selects the facts of a recorded request by its id; samples without one. */
export function RequestChoice({
  value,
  missing,
  onChange,
}: {
  value: string | undefined
  missing: readonly string[]
  onChange(id: string | undefined): void
}) {
  const { data } = useWhoami()
  const [text, setText] = useState(value ?? '')
  if (data?.ledger === false) return null
  return (
    <div className="space-y-3">
      <form
        className="flex flex-wrap items-center gap-2"
        onSubmit={(event) => {
          event.preventDefault()
          onChange(text.trim() === '' ? undefined : text.trim())
        }}
      >
        <Input
          aria-label="Id of a recorded request"
          placeholder="Id of a recorded request (x-request-id)"
          className="max-w-96 font-mono text-xs"
          value={text}
          spellCheck={false}
          onChange={(event) => setText(event.target.value)}
        />
        <Button type="submit">Use its facts</Button>
        {value !== undefined && (
          <Button
            tone="quiet"
            icon={X}
            onClick={() => {
              setText('')
              onChange(undefined)
            }}
          >
            Samples
          </Button>
        )}
      </form>
      {value !== undefined && missing.length > 0 && (
        <Notice title={`Not recorded: ${missing.join(', ')}`}>
          Add them below if the expression needs them.
        </Notice>
      )}
    </div>
  )
}
