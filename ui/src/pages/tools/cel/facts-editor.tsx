import { useState } from 'react'
import { CodeEditor } from '../../../editors/code-editor.tsx'

/** The facts as JSON. Reports them while they are valid. */
export function FactsEditor({ facts, onChange }: { facts: object; onChange(facts: unknown): void }) {
  const [text, setText] = useState(() => JSON.stringify(facts, null, 2))
  const [mistake, setMistake] = useState<string>()
  const change = (next: string) => {
    setText(next)
    const read = parsed(next)
    setMistake(read.mistake)
    if (read.mistake === undefined) onChange(read.value)
  }
  return (
    <div>
      <CodeEditor
        language="json"
        label="Facts as JSON"
        value={text}
        size="tall"
        invalid={mistake !== undefined}
        onChange={change}
      />
      {mistake && (
        <p role="alert" className="mt-1 text-xs text-bad">
          {mistake}
        </p>
      )}
    </div>
  )
}

function parsed(text: string): { readonly value?: unknown; readonly mistake?: string } {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value }
    return { mistake: 'The facts must be a JSON object.' }
  } catch (error) {
    return { mistake: `The facts are not JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
}
