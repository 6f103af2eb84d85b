import { consumerGroupResource } from '../../../../src/usage/api/consumer-group-resource.ts'
import { kindOf } from '../kind.ts'

export const consumerGroups = kindOf(consumerGroupResource)
