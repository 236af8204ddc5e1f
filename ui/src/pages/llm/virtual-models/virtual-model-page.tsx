import { useParams } from 'wouter'
import { Card } from '../../../components/layout/card.tsx'
import { isObject } from '../../../schema-form/model/value.ts'
import { ResourceEditor } from '../../resources/resource-editor.tsx'
import type { Routing } from './routing.ts'
import { RoutingPicture } from './routing-picture.tsx'

const initial = { name: '', routing: { weighted: { targets: [{ model: '', weight: 1 }] } } }

/** Creates or edits a virtual model, with a picture of its routing that follows the form. */
export default function VirtualModelPage() {
  const { id = '' } = useParams()
  return (
    <ResourceEditor
      kind="llm.virtualModel"
      id={id === 'new' ? undefined : id}
      noun="virtual model"
      about="A name that distributes requests over several models."
      path="/llm/virtual-models"
      initial={initial}
      before={({ form }) => (
        <Card title="Routing" about="The effect of the settings below.">
          <RoutingPicture routing={routingOf(form.value)} />
        </Card>
      )}
    />
  )
}

/** Routing of a value that may be incomplete: members of another type are skipped. */
function routingOf(value: unknown): Routing | undefined {
  const routing = isObject(value) ? value['routing'] : undefined
  if (!isObject(routing)) return undefined
  const strategies = Object.entries(routing).flatMap(([name, strategy]) => {
    const targets = isObject(strategy) && Array.isArray(strategy['targets']) ? strategy['targets'] : []
    return strategy === undefined ? [] : [[name, { targets: targets.filter(isObject) }] as const]
  })
  return Object.fromEntries(strategies) as Routing
}
