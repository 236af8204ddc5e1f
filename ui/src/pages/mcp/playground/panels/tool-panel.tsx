import { Play, X } from 'lucide-react'
import { useState } from 'react'
import { Button } from '../../../../components/action/button.tsx'
import { Badge } from '../../../../components/feedback/badge.tsx'
import { Card } from '../../../../components/layout/card.tsx'
import { useSchemaForm } from '../../../../schema-form/form-state.ts'
import { SchemaForm } from '../../../../schema-form/schema-form.tsx'
import type { McpItem } from '../../queries.ts'
import { descriptionOf, hintsOf, nameOf, titleOf } from '../../servers/item.ts'
import { defaultsOf, formSchemaOf } from '../client/tool-schema.ts'
import { useMcpSession } from '../use-session.ts'
import { CallView } from './call-view.tsx'
import { ItemPicker } from './item-picker.tsx'

type Props = { readonly tools: readonly McpItem[]; readonly chosen: string; onChoose(name: string): void }

/** Tools, each with its arguments as a form. */
export function ToolPanel({ tools, chosen, onChoose }: Props) {
  return (
    <ItemPicker noun="tools" items={tools} chosen={chosen} onChoose={onChoose}>
      {(tool) => <Tool key={nameOf(tool)} tool={tool} />}
    </ItemPicker>
  )
}

function Tool({ tool }: { tool: McpItem }) {
  const { session, state } = useMcpSession()
  const [schema] = useState(() => formSchemaOf(tool['inputSchema']))
  const form = useSchemaForm(defaultsOf(schema))
  const name = nameOf(tool)
  const calls = state.calls.filter((call) => call.method === 'tools/call' && call.name === name)
  const running = calls.find(({ endedAt }) => endedAt === undefined)
  const hasArguments = Object.keys(schema.properties ?? {}).length > 0
  const call = () => {
    if (form.check(schema)) void session.call('tools/call', name, { name, arguments: form.value })
  }
  return (
    <>
      <Card
        title={titleOf(tool) ?? name}
        about={<bdi className="font-mono break-all">{name}</bdi>}
        actions={hintsOf(tool).map(({ text, tone }) => (
          <Badge key={text} tone={tone}>
            {text}
          </Badge>
        ))}
      >
        <form
          noValidate
          className="space-y-4"
          onSubmit={(event) => {
            event.preventDefault()
            call()
          }}
        >
          {descriptionOf(tool) && (
            <bdi className="block max-w-prose text-sm whitespace-pre-wrap text-ink-soft">
              {descriptionOf(tool)}
            </bdi>
          )}
          {hasArguments ? (
            <SchemaForm schema={schema} form={form} label={`Arguments of ${name}`} />
          ) : (
            <p className="text-sm text-ink-soft">The tool has no arguments.</p>
          )}
          <div className="flex gap-2">
            <Button type="submit" tone="primary" icon={Play} busy={running !== undefined}>
              Call the tool
            </Button>
            {running && (
              <Button icon={X} onClick={() => session.cancel(running.id)}>
                Cancel
              </Button>
            )}
          </div>
        </form>
      </Card>
      {calls.slice(0, 5).map((one) => (
        <CallView key={one.id} call={one} />
      ))}
    </>
  )
}
