//! The smallest engine passes what every engine passes.

use ensilo_map_engine::MapEngine;

ensilo_engine_suite::engine_tests!(MapEngine);
