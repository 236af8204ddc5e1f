import { Eye } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { Button } from '../../../components/action/button.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input, TextArea } from '../../../components/form/input.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { noTexts, readViewer, type ViewerMistakes, type ViewerTexts } from './viewer.ts'

const samples: readonly { readonly label: string; readonly texts: Partial<ViewerTexts> }[] = [
  { label: 'Nobody', texts: {} },
  { label: 'A user', texts: { claims: '{\n  "sub": "ada",\n  "roles": ["reader"]\n}' } },
  { label: 'A virtual key', texts: { apiKey: '{\n  "name": "ci",\n  "group": "platform"\n}' } },
]

type Props = { readonly texts: ViewerTexts; onShow(texts: ViewerTexts): void }

/** The client whose lists are displayed: claims of its token, metadata of its key. */
export function ViewerForm({ texts: initial, onShow }: Props) {
  const [texts, setTexts] = useState(initial)
  const [mistakes, setMistakes] = useState<ViewerMistakes>({})
  const set = (name: keyof ViewerTexts) => (event: { target: { value: string } }) => {
    setTexts({ ...texts, [name]: event.target.value })
    setMistakes({ ...mistakes, [name]: undefined })
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const read = readViewer(texts)
    if (read.kind === 'mistakes') return setMistakes(read.mistakes)
    setMistakes({})
    onShow(texts)
  }
  const use = (sample: Partial<ViewerTexts>) => {
    const next = { ...noTexts, ...sample }
    setTexts(next)
    setMistakes({})
    onShow(next)
  }
  const json = (name: 'claims' | 'apiKey' | 'headers', label: string, help: string, rows: number) => (
    <Field label={label} help={help} error={mistakes[name]}>
      {(control) => (
        <TextArea
          {...control}
          rows={rows}
          spellCheck={false}
          className="font-mono text-xs"
          value={texts[name]}
          onChange={set(name)}
        />
      )}
    </Field>
  )
  return (
    <Card title="The client" about="Nothing is sent to the servers on its behalf.">
      <form noValidate onSubmit={submit} className="space-y-4">
        <fieldset aria-label="Examples" className="flex flex-wrap gap-2">
          {samples.map(({ label, texts: sample }) => (
            <Button key={label} size="small" onClick={() => use(sample)}>
              {label}
            </Button>
          ))}
        </fieldset>
        {json('claims', 'Claims of the token', 'JSON, jwt in rules. Empty: a client without a token.', 6)}
        {json('apiKey', 'Metadata of the virtual key', 'JSON, apiKey in rules.', 3)}
        <Field label="Servers that the key allows" help="Names or patterns: files, git*. Empty: all.">
          {(control) => <Input {...control} value={texts.targets} onChange={set('targets')} />}
        </Field>
        <details>
          <summary className="cursor-pointer text-xs text-ink-soft">Address and headers</summary>
          <div className="mt-3 space-y-4">
            <Field label="Address of the client">
              {(control) => (
                <Input {...control} placeholder="127.0.0.1" value={texts.source} onChange={set('source')} />
              )}
            </Field>
            {json('headers', 'Headers of the request', 'JSON with texts as values.', 3)}
          </div>
        </details>
        <Button type="submit" tone="primary" icon={Eye}>
          Show the lists
        </Button>
      </form>
    </Card>
  )
}
