import { Play } from 'lucide-react'
import { useState } from 'react'
import { Button } from '../../../../components/action/button.tsx'
import { Field } from '../../../../components/form/field.tsx'
import { Input } from '../../../../components/form/input.tsx'
import { Card } from '../../../../components/layout/card.tsx'
import type { McpItem } from '../../queries.ts'
import { descriptionOf, nameOf, parametersOf, titleOf } from '../../servers/item.ts'
import { useMcpSession } from '../use-session.ts'
import { CallView } from './call-view.tsx'
import { ItemPicker } from './item-picker.tsx'

type Props = { readonly prompts: readonly McpItem[]; readonly chosen: string; onChoose(name: string): void }

/** Prompts, each with its arguments. */
export function PromptPanel({ prompts, chosen, onChoose }: Props) {
  return (
    <ItemPicker noun="prompts" items={prompts} chosen={chosen} onChoose={onChoose}>
      {(prompt) => <Prompt key={nameOf(prompt)} prompt={prompt} />}
    </ItemPicker>
  )
}

function Prompt({ prompt }: { prompt: McpItem }) {
  const { session, state } = useMcpSession()
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const [missing, setMissing] = useState<readonly string[]>([])
  const name = nameOf(prompt)
  const parameters = parametersOf(prompt)
  const calls = state.calls.filter((call) => call.method === 'prompts/get' && call.name === name)
  const get = () => {
    const absent = parameters.filter((one) => one.required && !values[one.name]).map((one) => one.name)
    setMissing(absent)
    if (absent.length > 0) return
    const given = Object.fromEntries(Object.entries(values).filter(([, text]) => text !== ''))
    void session.call('prompts/get', name, { name, arguments: given })
  }
  return (
    <>
      <Card title={titleOf(prompt) ?? name} about={<bdi className="font-mono break-all">{name}</bdi>}>
        <form
          noValidate
          className="space-y-4"
          onSubmit={(event) => {
            event.preventDefault()
            get()
          }}
        >
          {descriptionOf(prompt) && (
            <bdi className="block text-sm text-ink-soft">{descriptionOf(prompt)}</bdi>
          )}
          {parameters.map(({ name: parameter, required, description }) => (
            <Field
              key={parameter}
              label={<bdi>{parameter}</bdi>}
              required={required}
              help={description && <bdi>{description}</bdi>}
              error={missing.includes(parameter) && 'is required'}
            >
              {(control) => (
                <Input
                  {...control}
                  value={values[parameter] ?? ''}
                  onChange={(event) => setValues({ ...values, [parameter]: event.target.value })}
                />
              )}
            </Field>
          ))}
          <Button type="submit" tone="primary" icon={Play}>
            Get the prompt
          </Button>
        </form>
      </Card>
      {calls.slice(0, 5).map((one) => (
        <CallView key={one.id} call={one} />
      ))}
    </>
  )
}
