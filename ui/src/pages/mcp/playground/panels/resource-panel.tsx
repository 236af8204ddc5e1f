import { Play } from 'lucide-react'
import { useState } from 'react'
import { Button } from '../../../../components/action/button.tsx'
import { Field } from '../../../../components/form/field.tsx'
import { Input } from '../../../../components/form/input.tsx'
import { Card } from '../../../../components/layout/card.tsx'
import type { McpItem } from '../../queries.ts'
import { descriptionOf, nameOf, textOf, titleOf } from '../../servers/item.ts'
import { useMcpSession } from '../use-session.ts'
import { CallView } from './call-view.tsx'
import { ItemPicker } from './item-picker.tsx'

type Props = { readonly resources: readonly McpItem[]; readonly chosen: string; onChoose(name: string): void }

/** Resources and resource templates. */
export function ResourcePanel({ resources, chosen, onChoose }: Props) {
  return (
    <ItemPicker noun="resources" items={resources} chosen={chosen} onChoose={onChoose}>
      {(resource) => <Resource key={nameOf(resource)} resource={resource} />}
    </ItemPicker>
  )
}

function Resource({ resource }: { resource: McpItem }) {
  const { session, state } = useMcpSession()
  const [uri, setUri] = useState(nameOf(resource))
  const calls = state.calls.filter((call) => call.method === 'resources/read' && call.name === uri)
  const isTemplate = resource['uriTemplate'] !== undefined
  const isIncomplete = /\{[^}]*\}/.test(uri)
  return (
    <>
      <Card title={titleOf(resource) ?? nameOf(resource)} about={textOf(resource['mimeType'])}>
        <form
          noValidate
          className="space-y-4"
          onSubmit={(event) => {
            event.preventDefault()
            if (!isIncomplete) void session.call('resources/read', uri, { uri })
          }}
        >
          {descriptionOf(resource) && (
            <bdi className="block text-sm text-ink-soft">{descriptionOf(resource)}</bdi>
          )}
          <Field
            label="URI"
            help={isTemplate ? 'Replace the parts in braces.' : undefined}
            error={isTemplate && isIncomplete && 'has parts in braces'}
          >
            {(control) => (
              <Input
                {...control}
                className="font-mono text-xs"
                readOnly={!isTemplate}
                value={uri}
                onChange={(event) => setUri(event.target.value)}
              />
            )}
          </Field>
          <Button type="submit" tone="primary" icon={Play} disabled={isIncomplete}>
            Read the resource
          </Button>
        </form>
      </Card>
      {calls.slice(0, 5).map((one) => (
        <CallView key={one.id} call={one} />
      ))}
    </>
  )
}
