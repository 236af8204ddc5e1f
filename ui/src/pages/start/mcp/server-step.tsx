import { ArrowRight } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useMayChange } from '../../../api/whoami.ts'
import { Button } from '../../../components/action/button.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input } from '../../../components/form/input.tsx'
import { Segmented } from '../../../components/form/segmented.tsx'
import { useSave } from '../../../save/save.tsx'
import { splitCommand } from './split-command.ts'

type Transport = 'program' | 'http' | 'sse'

/** Creates a record of `mcp.target`. */
export function ServerStep({ onDone }: { onDone(): void }) {
  const { save, busy, dialog } = useSave('mcp.target')
  const mayChange = useMayChange()
  const [transport, setTransport] = useState<Transport>('http')
  const [name, setName] = useState('')
  const [place, setPlace] = useState('')
  const [problem, setProblem] = useState<string>()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    const value = { name: name.trim(), ...targetOf(transport, place.trim()) }
    const outcome = await save({ record: undefined, value })
    setProblem(outcome.kind === 'refused' ? outcome.message : undefined)
    if (outcome.kind === 'saved') onDone()
  }
  return (
    <form onSubmit={submit} className="space-y-4">
      <Segmented<Transport>
        label="Transport"
        value={transport}
        onChange={setTransport}
        options={[
          { value: 'http', label: 'Address' },
          { value: 'program', label: 'Command' },
          { value: 'sse', label: 'Address (SSE)' },
        ]}
      />
      <div className="grid grid-cols-1 gap-4 sm:grid-cols-[12rem_minmax(0,1fr)]">
        <Field label="Name" required help="Prefix of its tools among several servers.">
          {(control) => (
            <Input
              {...control}
              value={name}
              placeholder="files"
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        {transport === 'program' ? (
          <Field label="Command" required help="Each session runs its own process of this program.">
            {(control) => (
              <Input
                {...control}
                value={place}
                spellCheck={false}
                className="font-mono"
                placeholder="npx -y @modelcontextprotocol/server-everything"
                onChange={(event) => setPlace(event.target.value)}
              />
            )}
          </Field>
        ) : (
          <Field label="Address" required>
            {(control) => (
              <Input
                {...control}
                type="url"
                value={place}
                placeholder={
                  transport === 'sse' ? 'https://mcp.example.com/sse' : 'https://mcp.example.com/mcp'
                }
                onChange={(event) => setPlace(event.target.value)}
              />
            )}
          </Field>
        )}
      </div>
      {problem && (
        <Notice tone="bad" title={problem}>
          {transport === 'program' &&
            problem.includes('allowStdioTargets') &&
            'The file permits programs with config.storage.allowStdioTargets: true, which is read at start.'}
        </Notice>
      )}
      <Button
        type="submit"
        tone="primary"
        icon={ArrowRight}
        busy={busy}
        disabled={!mayChange || name.trim() === '' || place.trim() === ''}
      >
        Add server
      </Button>
      {dialog}
    </form>
  )
}

function targetOf(transport: Transport, place: string): object {
  if (transport === 'http') return { mcp: { host: place } }
  if (transport === 'sse') return { sse: { host: place } }
  const [cmd = '', ...args] = splitCommand(place)
  return { stdio: { cmd, ...(args.length > 0 && { args }) } }
}
